"""What a compile asks for."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import ValidationError

from ..errors import RequestError
from ..options import CompileOptions, option_reason
from ..request import WrittenGraph, compile_body
from ..target import Target
from ..target_names import note

_log = logging.getLogger("tensorkiln")

if TYPE_CHECKING:
    from ..runtime.cuda import Driver

    Device: TypeAlias = int | Driver

NATIVE: Final = "cpu:native"
TargetSource: TypeAlias = Target | str | Mapping[str, object]
Targets: TypeAlias = TargetSource | Sequence[TargetSource]
OptionsSource: TypeAlias = CompileOptions | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """A graph, the targets and the options; and `body`, the request that asks for them."""

    graph: WrittenGraph
    targets: tuple[Target, ...]
    options: CompileOptions
    body: bytes

    @staticmethod
    def of(graph: WrittenGraph, target: Targets, options: OptionsSource | None) -> Asked:
        """What is asked for, for one target or several.

        RequestError for a target or an option that does not exist; an error of the graph when it is not JSON.
        """
        targets = [target] if isinstance(target, str) or not isinstance(target, Sequence) else target
        if not targets:
            raise RequestError("compile needs at least one target.")
        for each in targets:
            if isinstance(each, str) and (said := note(each)) is not None:
                _log.warning(said)
        parsed = tuple(each if isinstance(each, Target) else Target.parse(each) for each in targets)
        wanted = options_of(options)
        return Asked(graph, parsed, wanted, compile_body(graph, parsed, wanted))


def options_of(options: OptionsSource | None) -> CompileOptions:
    """The options that are meant. RequestError for one that does not exist."""
    if isinstance(options, CompileOptions):
        return options
    try:
        return CompileOptions.model_validate(options or {})
    except ValidationError as error:
        raise RequestError(f"The compile options cannot be used: {option_reason(error)}") from None

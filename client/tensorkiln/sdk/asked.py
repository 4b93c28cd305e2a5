"""The request of a compile: a graph, targets and options."""

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
    """A graph, its targets and options, and `body`, the encoded request."""

    graph: WrittenGraph
    targets: tuple[Target, ...]
    options: CompileOptions
    body: bytes

    @staticmethod
    def of(graph: WrittenGraph, target: Targets, options: OptionsSource | None) -> Asked:
        """Make the request for one target or several.

        RequestError without a target, and for an unknown target or option; the graph's own error when it is not JSON.
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
    """Parse the options; None means the defaults. RequestError for an unknown option or a wrong value."""
    if isinstance(options, CompileOptions):
        return options
    try:
        return CompileOptions.model_validate(options or {})
    except ValidationError as error:
        raise RequestError(f"The compile options cannot be used: {option_reason(error)}") from None

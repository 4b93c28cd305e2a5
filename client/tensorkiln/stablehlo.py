"""A StableHLO module for translation to a graph by a service."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import InvalidGraphError, LimitExceededError
from .expr import Dim, to_wire
from .limits import MAX_BODY_BYTES


@dataclass(frozen=True, slots=True)
class SymbolicArguments:
    """The dynamic dims of a module's arguments.

    `shapes` has the shape of each argument of `@main`; `symbols` the inclusive bounds of each symbol in them.
    """

    shapes: Sequence[Sequence[Dim]]
    symbols: Mapping[str, tuple[int, int]]

    def wire(self) -> dict[str, Any]:
        """The request fields for these dims."""
        return {
            "dims": _bounds_wire(self.symbols),
            "shapes": [[to_wire(dim) for dim in shape] for shape in self.shapes],
        }


@dataclass(frozen=True, slots=True)
class StableHlo:
    """A module: its text, or its portable artifact as bytes. Client methods take it in place of a graph.

    The inputs of its graph are the arguments of `@main` in order, the outputs its results. `dims` is required if an
    argument has dynamic dims: either their inclusive bounds by name, where `0.1` is dimension 1 of argument 0, or the
    shapes of all arguments in symbols. Only the service parses the module: its UnsupportedGraphError names an operation
    that cannot be translated, and its location in the original program.
    """

    module: bytes | str
    dims: SymbolicArguments | Mapping[str, tuple[int, int]] | None = None

    def body(self) -> bytes:
        """The body of `POST /translate`; equal modules give equal bytes.

        LimitExceededError when it is too long.
        """
        module = self.module
        stated = {"text": module} if isinstance(module, str) else {"artifact": b64encode(module).decode("ascii")}
        fields: dict[str, Any] = {"stablehlo": stated}
        if isinstance(self.dims, SymbolicArguments):
            fields |= self.dims.wire()
        elif self.dims is not None:
            fields["dims"] = _bounds_wire(self.dims)
        try:
            text = json.dumps(fields, separators=(",", ":")).encode()
        except UnicodeError as error:
            raise InvalidGraphError(f"The module's text is not Unicode: {error}.") from None
        if len(text) > MAX_BODY_BYTES:
            raise LimitExceededError(
                f"The module is {len(text)} bytes, the limit is {MAX_BODY_BYTES}; pass large constants as arguments.",
                limit="body_bytes",
                maximum=MAX_BODY_BYTES,
                actual=len(text),
            )
        return text


def _bounds_wire(bounds: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    return {name: {"min": low, "max": high} for name, (low, high) in bounds.items()}

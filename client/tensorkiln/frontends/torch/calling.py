"""The calling convention of a module: its arguments as graph inputs, and graph outputs as its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...errors import CallInputError
from ...expr import Dim
from ..solve_symbols import ArgumentSymbols
from .exported import Literal, Tree


@dataclass(frozen=True, slots=True)
class Named:
    """A tensor result, by the name of its output; a complex one has its parts on the last axis of the output."""

    name: str
    is_complex: bool = False


Result: TypeAlias = "Named | Dim | Literal"


@dataclass(frozen=True, slots=True)
class Calling:
    """`leaves` are the names of the arguments in order. `shapes` has the shapes of tensors, `sizes` the values of
    integers as dims, `fixed` the required values of constants.

    `returned` are the results in order. `buffers` and `changed` map buffers and arguments to the outputs that are their
    new values. Without trees, arguments and results are flat. `ranges` are the inclusive bounds of the symbols.
    """

    leaves: tuple[str, ...]
    shapes: Mapping[str, tuple[Dim, ...]]
    sizes: Mapping[str, Dim]
    fixed: Mapping[str, Literal]
    returned: tuple[Result, ...]
    buffers: Mapping[str, str]
    changed: Mapping[str, str]
    arguments: Tree | None = None
    argument_names: tuple[str, ...] = ()
    results: Tree | None = None
    ranges: Mapping[str, tuple[int, int]] | None = None
    solver: ArgumentSymbols = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "solver", ArgumentSymbols(self.shapes, self.ranges, self.sizes))

    def checked(self, flat: Sequence[Any]) -> dict[str, Any]:
        """The leaves by name. CallInputError when a value that the export fixed differs."""
        given = dict(zip(self.leaves, flat, strict=True))
        for name, value in self.fixed.items():
            if given[name] != value or isinstance(given[name], bool) != isinstance(value, bool):
                raise CallInputError(f"the export fixed {name} at {value!r}; given is {given[name]!r}")
        return given

    def symbols(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The values of the symbols, from the sizes of the arrays and the integers in `given`.

        Errors as for `ArgumentSymbols.values`. Symbols that these do not determine are omitted.
        """
        return self.solver.values(given)

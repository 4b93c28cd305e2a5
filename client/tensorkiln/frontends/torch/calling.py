"""How a module is called: which leaf of its arguments is which input, and which output lies where in its results."""

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
    """A tensor among the results, by the name of its output; a complex one has its parts on the last axis there."""

    name: str
    is_complex: bool = False


Result: TypeAlias = "Named | Dim | Literal"


@dataclass(frozen=True, slots=True)
class Calling:
    """`leaves` are the names of the arguments in order; `shapes` says of each tensor its shape, `sizes` of each integer
    its value as a dim, `fixed` what it must be.

    `returned` are the results in order. `buffers` and `changed` say which output is the new value of which buffer or
    argument. The trees are None where there is none: then arguments and results are flat. `ranges` are the inclusive
    bounds of the symbols.
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
        """The leaves by their names. CallInputError where one that the export fixed is another."""
        given = dict(zip(self.leaves, flat, strict=True))
        for name, value in self.fixed.items():
            if given[name] != value or isinstance(given[name], bool) != isinstance(value, bool):
                raise CallInputError(f"the export fixed {name} at {value!r}; given is {given[name]!r}")
        return given

    def symbols(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The values of the symbols, by the sizes of the arrays and by the integers that are given.

        Errors as for `ArgumentSymbols.values`. A symbol that neither says has no value.
        """
        return self.solver.values(given)

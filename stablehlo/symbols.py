"""Symbols for the dimensions of arguments that are not static."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tensorkiln.build import Builder
from tensorkiln.errors import RequestError, UnsupportedGraphError
from tensorkiln.expr import Dim, Expr, bounds, free_symbols, substitute, symbol
from tensorkiln.limits import MAX_SYMBOLS

_UNBOUNDED: Final = (1, (1 << 31) - 1)
"""Of a symbol that turns out to be what another dimension is."""


class SameSize(Exception):
    """A module asserts that a symbol is always what another dimension is."""

    def __init__(self, name: str, dim: Dim) -> None:
        super().__init__(name)
        self.name = name
        self.dim = dim


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison that is not decided by the bounds of symbols."""

    direction: str
    left: Dim
    right: Dim


def lone_symbol(dim: Dim) -> str | None:
    """The name of a dimension that is one symbol and nothing else."""
    if not isinstance(dim, Expr):
        return None
    names = free_symbols(dim)
    name = next(iter(names)) if len(names) == 1 else None
    return name if name is not None and symbol(name) == dim else None


def _place(name: str) -> str:
    """Where the dimension of a symbol stands."""
    argument, _, axis = name[1:].partition("_")
    return f"dimension {axis} of argument {argument}"


@dataclass(slots=True)
class Symbols:
    """The symbols of one module. `dims` are the bounds that its caller gives, `same` what is known to be equal.

    The symbol of dimension 1 of argument 0 is `d0_1`; `dims` may call it that, or `0.1`, and `dynamic` has the one by
    the other.
    """

    dims: Mapping[str, tuple[int, int]]
    same: dict[str, Dim] = field(default_factory=dict[str, Dim])
    unbounded: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    dynamic: dict[str, str] = field(default_factory=dict[str, str])
    given: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The bounds of the symbols that have some in `dims`."""

    def dim(self, builder: Builder, argument: int, axis: int) -> Dim:
        """The dimension of an argument, declared in `builder` if it is a symbol of its own."""
        name = f"d{argument}_{axis}"
        keys = [key for key in (name, f"{argument}.{axis}") if key in self.dims]
        self.used.update(keys)
        self.dynamic[f"{argument}.{axis}"] = name
        if len(keys) == 2 and self.dims[keys[0]] != self.dims[keys[1]]:
            raise RequestError(
                f"dims gives {keys[0]} and {keys[1]} different bounds: both are {_place(name)}.", pointers=["/dims"]
            )
        if keys:
            self.given[name] = self.dims[keys[0]]
        if name in self.same:
            same = self.same[name]
            for other in () if isinstance(same, int) else sorted(free_symbols(same)):
                # It may be one of a later argument.
                place, _, dimension = other[1:].partition("_")
                self.dim(builder, int(place), int(dimension))
            return same
        if name in builder.symbols:
            return symbol(name)
        if not keys:
            self.unbounded.append(name)
        low, high = self.dims[keys[0]] if keys else _UNBOUNDED
        if low == high:
            return low
        return builder.symbol(name, low, high)

    def unify(self, found: SameSize) -> None:
        """From now on a symbol is what another dimension is.

        UnsupportedGraphError when that goes in circles, RequestError when the bounds of both contradict each other.
        """
        if len(self.same) >= MAX_SYMBOLS or found.name in self.same:
            raise UnsupportedGraphError(
                f"The module asserts more than one size of {_place(found.name)} of @main; "
                f"the last of them is {str(found.dim)[:100]}.",
                pointers=["/stablehlo"],
            )
        self._require_agreement(found)
        self.same = {name: substitute(dim, {found.name: found.dim}) for name, dim in self.same.items()}
        self.same[found.name] = found.dim
        self.unbounded.clear()

    def _require_agreement(self, found: SameSize) -> None:
        """RequestError where a symbol's bounds exclude some value that it would have as another dimension."""
        names = frozenset[str]() if isinstance(found.dim, int) else free_symbols(found.dim)
        if found.name not in self.given or not self.given.keys() >= names:
            return
        low, high = self.given[found.name]
        least, most = bounds(found.dim, self.given)
        if least < low or most > high:
            raise RequestError(
                f"The module asserts that {_place(found.name)} of @main is {str(found.dim)[:100]}, "
                f"which is from {least} to {most}; dims has it from {low} to {high}. Leave the latter out.",
                pointers=["/dims"],
            )

    def require_bounds(self) -> None:
        """UnsupportedGraphError for a symbol without bounds, RequestError for bounds that are nobody's."""
        unknown = sorted(self.dims.keys() - self.used)
        if unknown:
            there = f"dynamic are {', '.join(sorted(self.dynamic))}" if self.dynamic else "all are static"
            raise RequestError(
                f"dims names no dynamic dimension of the module: {unknown[0][:64]!r}; {there}.",
                pointers=["/dims"],
                details={"dimensions": sorted(name for names in self.dynamic.items() for name in names)},
            )
        if self.unbounded:
            argument, _, axis = self.unbounded[0][1:].partition("_")
            raise UnsupportedGraphError(
                f"Dimension {axis} of argument {argument} of @main is dynamic and has no bounds; "
                f'give it some, as in "dims": {{"{argument}.{axis}": {{"min": 1, "max": 4096}}}}.',
                pointers=["/dims"],
                details={"dimension": f"{argument}.{axis}"},
            )

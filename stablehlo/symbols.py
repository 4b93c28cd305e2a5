"""Symbols for the dynamic dimensions of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tensorkiln.build import Builder
from tensorkiln.errors import RequestError, UnsupportedGraphError
from tensorkiln.expr import Dim, Expr, bounds, free_symbols, substitute, symbol
from tensorkiln.limits import MAX_SYMBOLS

_UNBOUNDED: Final = (1, (1 << 31) - 1)
"""Provisional bounds of a symbol without bounds, which may still be unified with another dimension."""


class SameSize(Exception):
    """Raised to restart the translation: the module asserts that symbol `name` equals `dim`."""

    def __init__(self, name: str, dim: Dim) -> None:
        super().__init__(name)
        self.name = name
        self.dim = dim


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of dimensions that the bounds of symbols do not decide."""

    direction: str
    left: Dim
    right: Dim


def lone_symbol(dim: Dim) -> str | None:
    """The symbol's name if the dimension is a single symbol, else None."""
    if not isinstance(dim, Expr):
        return None
    names = free_symbols(dim)
    name = next(iter(names)) if len(names) == 1 else None
    return name if name is not None and symbol(name) == dim else None


def _place(name: str) -> str:
    """The position of a symbol's dimension, for messages."""
    argument, _, axis = name[1:].partition("_")
    return f"dimension {axis} of argument {argument}"


@dataclass(slots=True)
class Symbols:
    """The symbols of one module. `dims` are the caller's bounds; `same` maps symbols to the dimensions they equal.

    The symbol of dimension 1 of argument 0 is `d0_1`; `dims` may name it so, or as `0.1`. `dynamic` maps the latter to
    the former.
    """

    dims: Mapping[str, tuple[int, int]]
    same: dict[str, Dim] = field(default_factory=dict[str, Dim])
    unbounded: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    dynamic: dict[str, str] = field(default_factory=dict[str, str])
    given: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The caller's bounds by symbol."""

    def dim(self, builder: Builder, argument: int, axis: int) -> Dim:
        """The dimension of an argument; a new symbol is declared in `builder`."""
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
                # The symbol may belong to a later argument.
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
        """Replace a symbol by the dimension that it equals.

        UnsupportedGraphError for a second such dimension, RequestError if the bounds of both contradict each other.
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
        """RequestError if the symbol's bounds exclude a value of the dimension that it equals."""
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
        """UnsupportedGraphError for a symbol without bounds, RequestError for bounds of an unknown dimension."""
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

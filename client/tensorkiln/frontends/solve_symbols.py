"""Solves for the values of symbols, given the sizes of a call's arrays and its integer arguments.

A symbol is solved from a size that is linear in it, such as `n`, `2*n + 1` or `n*m` with known `n`, or from a monotonic
polynomial, such as `n*n`. All other sizes are checked against the solution.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final

from ..errors import CallBoundsError, CallInputError
from ..expr import Dim, Expr, ExprError, evaluate, free_symbols, slope, substitute

Range = tuple[int, int]
_LARGEST: Final = 1 << 62
"""The upper bound of a symbol without a range."""


@dataclass(frozen=True, slots=True)
class Place:
    """An integer of a call, equal to `dim` in symbols. `says` starts the sentence of an error that states its value."""

    says: str
    dim: Dim


@dataclass(frozen=True, slots=True)
class _Step:
    """The solution of `symbol` from a place: `factor * symbol + offset`; without a factor, a monotonic polynomial."""

    place: int
    symbol: str
    factor: Dim | None
    offset: Dim

    @property
    def effort(self) -> tuple[int, int]:
        """Sort key, simplest places first; a symbolic factor comes last because it may be 0 at a call."""
        match self.factor:
            case None:
                return 2, self.place
            case int():
                return (0 if (self.factor, self.offset) == (1, 0) else 1), self.place
            case _:
                return 3, self.place


class SymbolSolver:
    """Solves symbols from the places of each call. `solved` are those that the places determine, `unsolved` the others.

    `known` are symbols whose values each call supplies. `ranges` are inclusive; without one, every integer is valid.
    """

    def __init__(
        self, places: Sequence[Place], ranges: Mapping[str, Range] | None = None, known: Collection[str] = ()
    ) -> None:
        self._places = tuple(places)
        self._ranges = ranges or {}
        self._steps = _steps(self._places, set(known), self._ranges)
        self.solved: Final = frozenset(step.symbol for step in self._steps) | frozenset(known)
        wanted = {name for place in self._places for name in free_symbols(place.dim)} | self._ranges.keys()
        self.unsolved: Final = tuple(sorted(wanted - self.solved))
        read = {step.place for step in self._steps}
        self._checked = tuple(
            (number, place.dim, str(place.dim) if isinstance(place.dim, Expr) else "")
            for number, place in enumerate(self._places)
            if number not in read
        )

    def solve(self, values: Sequence[int], known: Mapping[str, int] | None = None) -> dict[str, int]:
        """The values of the symbols, `known` included, when the places have these `values`.

        CallInputError when no integer solves a place, CallBoundsError when a symbol is out of its range.
        """
        found = dict(known or {})
        for step in self._steps:
            place, value = self._places[step.place], values[step.place]
            found[step.symbol] = self._within(step, value, _solved(step, place, value, found, self._ranges))
        return found

    def check(self, values: Sequence[int], found: Mapping[str, int]) -> None:
        """CallInputError for a place whose value differs from that of its dim.

        A place with symbols that are not in `found` is not checked.
        """
        for number, dim, name in self._checked:
            value = values[number]
            if value == (found.get(name) if name else dim):
                continue
            if isinstance(dim, int):
                raise CallInputError(f"{self._places[number].says} {value}, and must be {dim}")
            if not free_symbols(dim) <= found.keys():
                continue
            wanted = _evaluated(self._places[number], value, dim, found)
            if wanted != value:
                raise CallInputError(
                    f"{self._places[number].says} {value}, and must be {dim}, here {wanted}"
                    f"{self._reason(dim, values, found)}; pass arguments whose sizes agree"
                )

    def _within(self, step: _Step, value: int, solved: int) -> int:
        low, high = self._ranges.get(step.symbol, (solved, solved))
        if not low <= solved <= high:
            raise CallBoundsError(
                f"{self._places[step.place].says} {value}, which makes the symbol {step.symbol} {solved}, and it is "
                f"from {low} to {high}: pass another size, or import the model with wider bounds of {step.symbol}",
                details={"symbol": step.symbol, "value": solved, "min": low, "max": high},
            )
        return solved

    def _reason(self, dim: Dim, values: Sequence[int], found: Mapping[str, int]) -> str:
        """The clause of an error that names the places from which the symbols of a dim were solved."""
        said = [
            f"{self._places[step.place].says} {values[step.place]}"
            for step in self._steps
            if step.symbol in free_symbols(dim)
        ]
        return f", since {' and '.join(said)}" if said else ""


class ArgumentSymbols:
    """Solves symbols from the shapes of a call's arrays, by name, and from its `integers`, dims by name."""

    def __init__(
        self,
        shapes: Mapping[str, Sequence[Dim]],
        ranges: Mapping[str, Range] | None = None,
        integers: Mapping[str, Dim] | None = None,
    ) -> None:
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}
        self._integers = tuple(integers or {})
        places = [Place(f"{name} is", dim) for name, dim in (integers or {}).items()]
        for name, shape in self._shapes.items():
            places += [Place(f"axis {axis} of {name} has the size", dim) for axis, dim in enumerate(shape)]
        self._solver = SymbolSolver(places, ranges)

    @property
    def solved(self) -> frozenset[str]:
        """The symbols that the arguments determine."""
        return self._solver.solved

    @property
    def unsolved(self) -> tuple[str, ...]:
        """The symbols that no argument determines."""
        return self._solver.unsolved

    def of_arrays(self, arrays: Sequence[Any], known: Mapping[str, int] | None = None) -> dict[str, int]:
        """`values` for arrays in the order of the shapes; only without integers."""
        return self.values(dict(zip(self._shapes, arrays, strict=True)), known)

    def values(self, given: Mapping[str, Any], known: Mapping[str, int] | None = None) -> dict[str, int]:
        """The values of the symbols for the arguments `given`, by name; includes `known`.

        CallInputError, with the argument and axis, for a size that no value solves or that contradicts another, for a
        wrong rank, and for an argument that is not an array or an integer; CallBoundsError for a symbol out of range.
        """
        values = [_integer(name, given[name]) for name in self._integers]
        for name, shape in self._shapes.items():
            own = _shape(name, given[name])
            if len(own) != len(shape):
                raise CallInputError(
                    f"{name} has the shape {_spelled(own)} of rank {len(own)}, and must have the rank {len(shape)}, "
                    f"of the shape {_spelled(shape)}"
                )
            values += own
        found = self._solver.solve(values, known)
        self._solver.check(values, found)
        return found


def _steps(places: Sequence[Place], known: set[str], ranges: Mapping[str, Range]) -> tuple[_Step, ...]:
    """One step for each symbol that can be solved, in dependency order."""
    first: dict[Dim, int] = {}
    for number, place in enumerate(places):
        if isinstance(place.dim, Expr):
            first.setdefault(place.dim, number)
    steps: list[_Step] = []
    while True:
        possible = [step for dim, number in first.items() if (step := _step(number, dim, known, ranges)) is not None]
        if not possible:
            return tuple(steps)
        best = min(possible, key=lambda step: step.effort)
        steps.append(best)
        known.add(best.symbol)
        first = {dim: number for dim, number in first.items() if not free_symbols(dim) <= known}


def _step(number: int, dim: Dim, known: Collection[str], ranges: Mapping[str, Range]) -> _Step | None:
    unknown = free_symbols(dim) - set(known)
    if not isinstance(dim, Expr) or len(unknown) != 1:
        return None
    (name,) = unknown
    factor = slope(dim, name)
    if factor is not None:
        return _Step(number, name, factor, substitute(dim, {name: 0}))
    return _Step(number, name, None, dim) if _grows(dim, name) and ranges.get(name, (0, 0))[0] >= 0 else None


def _grows(dim: Expr, name: str) -> bool:
    """Whether it is a polynomial of this symbol alone with positive coefficients, up to a constant."""
    return all(
        not monomial or (coefficient > 0 and all(atom.key == name for atom in monomial))
        for monomial, coefficient in dim.terms
    )


def _solved(step: _Step, place: Place, value: int, found: Mapping[str, int], ranges: Mapping[str, Range]) -> int:
    """The value of the step's symbol; its range is not checked."""
    low, high = ranges.get(step.symbol, (0, _LARGEST))
    if step.factor is None:
        solved, left = _bisected(place.dim, step.symbol, value)
    else:
        factor = _evaluated(place, value, step.factor, found)
        if factor == 0:
            raise CallInputError(
                f"{place.says} {value}, and is {place.dim}, which gives no {step.symbol} where {step.factor} is 0: "
                "pass other sizes"
            )
        solved, left = divmod(value - _evaluated(place, value, step.offset, found), factor)
    if left:
        near = [
            evaluate(place.dim, {**found, step.symbol: each}) for each in (solved, solved + 1) if low <= each <= high
        ]
        advice = f"; near it are {' and '.join(map(str, sorted(near)))}" if near else ""
        raise CallInputError(f"{place.says} {value}, and must be {place.dim} for an integer {step.symbol}{advice}")
    return solved


def _bisected(dim: Dim, name: str, value: int) -> tuple[int, bool]:
    """The largest value of the symbol for which `dim` is at most `value`, and whether `dim` is less there."""
    least, most = 0, 1
    while _at(dim, name, most) <= value:
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if _at(dim, name, middle) <= value else (least, middle)
    return least, _at(dim, name, least) != value


def _at(dim: Dim, name: str, value: int) -> int:
    result = substitute(dim, {name: value})
    assert isinstance(result, int), "it has no other symbol"
    return result


def _evaluated(place: Place, value: int, dim: Dim, found: Mapping[str, int]) -> int:
    try:
        return evaluate(dim, found)
    except ExprError as error:
        raise CallInputError(f"{place.says} {value}, and must be {place.dim}, which has no value: {error}") from error


def _integer(name: str, value: object) -> int:
    try:
        return index(value if not isinstance(value, bool) else None)  # pyright: ignore[reportArgumentType]
    except TypeError as error:
        raise CallInputError(f"{name} must be an integer; given is a {type(value).__name__}") from error


def _shape(name: str, value: Any) -> tuple[int, ...]:
    shape: Any = getattr(value, "shape", None)
    if shape is None:
        shape = getattr(value, "__cuda_array_interface__", {}).get("shape")
    if not isinstance(shape, tuple):
        raise CallInputError(f"{name} must be an array; given is a {type(value).__name__}")
    return shape  # pyright: ignore[reportUnknownVariableType]


def _spelled(shape: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, shape))})"

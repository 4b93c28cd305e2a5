"""How a module is called: which leaf of its arguments is which input, and which output lies where in its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

from ...errors import CallInputError
from ...expr import Dim, Expr, ExprError, add, evaluate, free_symbols, mul, sub, substitute
from ...expr import symbol as symbol_named
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
    argument. The trees are None where there is none: then arguments and results are flat.
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

    def checked(self, flat: Sequence[Any]) -> dict[str, Any]:
        """The leaves by their names. CallInputError where one that the export fixed is another."""
        given = dict(zip(self.leaves, flat, strict=True))
        for name, value in self.fixed.items():
            if given[name] != value or isinstance(given[name], bool) != isinstance(value, bool):
                raise CallInputError(f"the export fixed {name} at {value!r}; given is {given[name]!r}")
        return given

    def symbols(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The values of the symbols, by the sizes of the arrays and by the integers that are given.

        A size that is a multiple of a symbol and a constant is solved. CallInputError where that leaves a fraction, for
        an integer that is not what the export or the other arguments make it, and for what is no array or no integer.
        """
        integers = {name: _integer(name, given[name]) for name in self.sizes}
        pending = [(name, dim, integers[name]) for name, dim in self.sizes.items()]
        for name, shape in self.shapes.items():
            own = _shape(name, given[name])
            pending += [(name, dim, size) for dim, size in zip(shape, own, strict=False)]
        found: dict[str, int] = {}
        solve(pending, found)
        for name, dim in self.sizes.items():
            _check_integer(name, dim, integers[name], found)
        return found


def solve(pending: Sequence[tuple[str, Dim, int]], found: dict[str, int]) -> None:
    """Add to `found` the symbols that follow from dims whose values are known: a name for errors, a dim, its value.

    CallInputError where a symbol would be a fraction.
    """
    rest, unsolved = list(pending), -1
    while rest and len(rest) != unsolved:
        unsolved = len(rest)
        rest = [entry for entry in rest if not _solve(*entry, found)]


def _integer(name: str, value: object) -> int:
    try:
        return index(value if not isinstance(value, bool) else None)  # pyright: ignore[reportArgumentType]
    except TypeError as error:
        raise CallInputError(f"{name} must be an integer; given is a {type(value).__name__}") from error


def _shape(name: str, value: object) -> Sequence[int]:
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple):
        raise CallInputError(f"{name} must be an array; given is a {type(value).__name__}")
    return shape  # pyright: ignore[reportUnknownVariableType]


def _check_integer(name: str, dim: Dim, value: int, found: Mapping[str, int]) -> None:
    try:
        wanted = evaluate(dim, found)
    except ExprError as error:
        raise CallInputError(f"{name} is {value}, and must be {dim}, which cannot be solved: {error}") from error
    if wanted != value:
        why = f"must be {wanted}" if isinstance(dim, int) else f"must be {dim}, here {wanted}"
        raise CallInputError(f"{name} {why}; given is {value}")


def _solve(name: str, dim: Dim, size: int, found: dict[str, int]) -> bool:
    """Whether the dim has no symbol any more whose value is not known."""
    rest = substitute(dim, found)
    unknown = free_symbols(rest)
    if not isinstance(rest, Expr) or len(unknown) != 1:
        return not unknown
    (symbol,) = unknown
    base = evaluate(rest, {symbol: 0})
    slope = evaluate(rest, {symbol: 1}) - base
    if slope == 0 or sub(rest, add(base, mul(slope, symbol_named(symbol)))) != 0:
        return False
    value, left = divmod(size - base, slope)
    if left:
        raise CallInputError(f"a size of {name} is {size}, and must be {dim} for an integer {symbol}")
    found[symbol] = value
    return True

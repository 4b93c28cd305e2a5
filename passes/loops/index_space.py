"""Index arithmetic over the loops of a kernel: reshape, flatten and divide indices, and simplify what the bounds allow.

An index is a `Dim` over three sorts of names: the graph's symbols, loop indices, and values read at run time (the row
of a gather, say). Code that creates a loop or reads such a value registers its range in the space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import gcd
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Atom, Dim, Expr, Monomial

from . import floor_bounds
from .long_division import divided

Index = tuple[Dim, ...]
_FLOORED = {"idiv": "floordiv", "mod": "floormod"}
_REMEMBERED: Final = 1 << 14
"""Size of the function caches: layers of a network repeat, and their index arithmetic with them."""


class IndexSpace:
    """The ranges of the names in an index: bounds of symbols, extents of names that start at 0."""

    def __init__(self, symbols: Mapping[str, tuple[int, int]]) -> None:
        self.symbols = dict(symbols)
        self.extents: dict[str, Dim] = {}
        self._graph = frozenset(symbols)
        self._proven: dict[Dim, bool] = {}

    def add(self, name: str, extent: Dim) -> Dim:
        """Introduce the index `name` with values `0 .. extent - 1`."""
        assert name not in self._graph, f"{name} is a symbol of the graph"
        if self.extents.setdefault(name, extent) != extent:
            self.extents[name] = extent
            self._proven.clear()
        return expr.symbol(name)

    def bound(self, name: str, low: int, high: int) -> None:
        """Introduce the value `name` in the range `low .. high`."""
        assert name not in self._graph, f"{name} is a symbol of the graph"
        if self.symbols.setdefault(name, (low, high)) != (low, high):
            self.symbols[name] = (low, high)
            self._proven.clear()

    @contextmanager
    def apart(self) -> Generator[None]:
        """Forget the names that are introduced inside."""
        before = self.symbols, self.extents, self._proven
        self.symbols, self.extents, self._proven = dict(self.symbols), dict(self.extents), dict(self._proven)
        try:
            yield
        finally:
            self.symbols, self.extents, self._proven = before

    def is_nonnegative(self, dim: Dim) -> bool:
        """Whether `dim >= 0` for every value of the names in it."""
        known = self._proven.get(dim)
        if known is None:
            known = expr.is_nonnegative(dim, self.symbols, self.extents)
            known = known or floor_bounds.is_nonnegative(dim, self.symbols, self.extents)
            self._proven[dim] = known
        return known

    def is_within(self, index: Dim, extent: Dim) -> bool:
        """Whether `0 <= index < extent` for every value of the names in them."""
        if self.extents.get(name_of(index)) == extent:
            return True
        return self.is_nonnegative(index) and self.is_nonnegative(expr.sub(expr.sub(extent, 1), index))

    def is_positive(self, dim: Dim) -> bool:
        """Whether `dim >= 1` for every value of the names in it."""
        return self.is_nonnegative(expr.sub(dim, 1))

    def largest(self, dim: Dim) -> int:
        """The largest value of `dim`, by the bounds of its symbols and loop indices."""
        ranges = dict(self.symbols)
        for name in expr.free_symbols(dim) & self.extents.keys():
            ranges[name] = (0, max(self.largest(self.extents[name]) - 1, 0))
        return expr.bounds(dim, ranges)[1]

    def divide(self, index: Dim, divisor: Dim) -> tuple[Dim, Dim]:
        """`(index // divisor, index % divisor)` for a nonnegative index, split into a sum if bounds allow."""
        if divisor == 1:
            return index, 0
        if divisor == 0:
            return 0, 0
        quotient, rest = expr.split_multiple(index, divisor)
        if self.is_within(rest, divisor):
            return quotient, rest
        if isinstance(divisor, Expr) and len(divisor.terms) > 1:
            whole, left = divided(index, divisor)
            if self.is_within(left, divisor):
                return whole, left
        for factor in _common_factors(rest, divisor):
            outer, inner = expr.split_multiple(rest, factor)
            if self.is_within(inner, factor):
                high, low = self.divide(outer, expr.split_multiple(divisor, factor)[0])
                return expr.add(quotient, high), expr.add(expr.mul(low, factor), inner)
        return expr.add(quotient, expr.floordiv(rest, divisor)), expr.floormod(rest, divisor)

    def simplified(self, dim: Dim) -> Dim:
        """`dim` with its divisions split if bounds allow."""
        if isinstance(dim, int) or all(atom.op == "symbol" for atoms, _ in dim.terms for atom in atoms):
            return dim
        terms = [expr.mul(coefficient, *map(self._simplified_atom, atoms)) for atoms, coefficient in dim.terms]
        return rejoin(expr.add(*terms) if len(terms) > 1 else terms[0])

    def _simplified_atom(self, atom: Atom) -> Dim:
        if atom.op not in ("floordiv", "floormod"):
            return Expr((((atom,), 1),))
        dividend, divisor = map(self.simplified, atom.args)
        if self.is_nonnegative(dividend) and self.is_positive(divisor):
            return self.divide(dividend, divisor)[atom.op == "floormod"]
        return (expr.floordiv if atom.op == "floordiv" else expr.floormod)(dividend, divisor)

    def floored(self, dim: Dim) -> Dim:
        """`dim` with floor divisions for truncating ones whose operands are nonnegative: the same values."""
        if isinstance(dim, int):
            return dim
        return expr.add(*(expr.mul(coefficient, *map(self._floored_atom, atoms)) for atoms, coefficient in dim.terms))

    def _floored_atom(self, atom: Atom) -> Dim:
        if atom.op == "symbol":
            return Expr((((atom,), 1),))
        args = tuple(map(self.floored, atom.args))
        is_plain = atom.op in _FLOORED and self.is_nonnegative(args[0]) and self.is_positive(args[1])
        return expr.CALLS[_FLOORED[atom.op] if is_plain else atom.op](*args)

    def flatten(self, index: Index, shape: Sequence[Dim]) -> Dim:
        """The row-major position of `index` in a contiguous array of `shape`."""
        return _flattened(index, tuple(shape))

    def unflatten(self, flat: Dim, shape: Sequence[Dim]) -> Index:
        """The index of the row-major position `flat` in a contiguous array of `shape`; the inverse of `flatten`."""
        index: list[Dim] = []
        for extent in reversed(shape[1:]):
            flat, position = self.divide(flat, extent)
            index.append(position)
        return (flat, *reversed(index)) if shape else ()

    def reshape(self, index: Index, shape: Sequence[Dim], source: Sequence[Dim]) -> Index:
        """The index into `source` of the element at `index` of `shape`, both row-major views of one array.

        Runs of dimensions with equal products are converted separately: only a run that merges or splits needs a
        division.
        """
        result: list[Dim] = []
        taken = 0
        for source_run, count in _runs(tuple(source), tuple(shape)):
            run_shape, run_index = tuple(shape[taken : taken + count]), index[taken : taken + count]
            taken += count
            result.extend(run_index if source_run == run_shape else self._regrouped(run_index, run_shape, source_run))
        return tuple(result)

    def _regrouped(self, index: Index, shape: Index, source: Index) -> Index:
        """`index` of `shape` as an index of `source`, by divisions.

        Where the element exists, each index is below its extent. In padding it may not be, and the ranges of its names
        do not show it: divisions are split as if it were a name of its own.
        """
        unsure = {
            f"inside {number}": number
            for number, (position, extent) in enumerate(zip(index, shape, strict=True))
            if not self.is_within(position, extent)
        }
        if not unsure:
            return self.unflatten(self.flatten(index, shape), source)
        with self.apart():
            named = list(index)
            for name, number in unsure.items():
                named[number] = self.add(name, shape[number])
            found = self.unflatten(self.flatten(tuple(named), shape), source)
        return tuple(expr.substitute(each, {name: index[number] for name, number in unsure.items()}) for each in found)


@lru_cache(_REMEMBERED)
def _flattened(index: Index, shape: Index) -> Dim:
    stride: Dim = 1
    terms: list[Dim] = []
    for position, extent in zip(reversed(index), reversed(shape), strict=True):
        terms.append(position if stride == 1 else expr.mul(stride, position))
        stride = expr.mul(stride, extent)
    return rejoin(expr.add(*terms))


@lru_cache(_REMEMBERED)
def _runs(source: Index, shape: Index) -> Sequence[tuple[Index, int]]:
    """Pairs of (consecutive source dims, number of consecutive dims of `shape`) with equal products."""
    runs: list[tuple[Index, int]] = []
    source_start = source_end = shape_start = shape_end = 0
    left: Dim = 1
    right: Dim = 1
    while source_end < len(source) or shape_end < len(shape):
        if left == right and (source_end > source_start or shape_end > shape_start):
            runs.append((source[source_start:source_end], shape_end - shape_start))
            source_start, shape_start, left, right = source_end, shape_end, 1, 1
            continue
        takes_source = source_end < len(source) and (shape_end == len(shape) or _may_grow(left, right))
        if takes_source:
            left = expr.mul(left, source[source_end])
            source_end += 1
        else:
            right = expr.mul(right, shape[shape_end])
            shape_end += 1
    if source_end > source_start or shape_end > shape_start:
        runs.append((source[source_start:source_end], shape_end - shape_start))
    return runs


def _may_grow(left: Dim, right: Dim) -> bool:
    """Whether to extend the left product next: it is the smaller one, or has fewer factors."""
    if isinstance(left, int) and isinstance(right, int):
        return left <= right
    if isinstance(left, int):
        return True
    if isinstance(right, int):
        return False
    return len(left.terms[0][0]) <= len(right.terms[0][0])


@lru_cache(_REMEMBERED)
def _common_factors(index: Dim, divisor: Dim) -> list[Dim]:
    """Factors that a divisor of one term shares with terms of the index, largest first: (8*i + j) // 16 is i // 2 for
    j < 8, and (8*n*i + j) // (16*n) for j < 8*n.
    """
    if not isinstance(index, Expr) or (isinstance(divisor, Expr) and len(divisor.terms) != 1):
        return []
    symbols, multiple = divisor.terms[0] if isinstance(divisor, Expr) else ((), divisor)
    shared: list[tuple[int, Monomial]] = []
    for monomial, coefficient in index.terms:
        common = Counter(symbols) & Counter(monomial)
        shared.append((gcd(multiple, coefficient), tuple(common.elements())))
    ordered = sorted(dict.fromkeys(shared), key=lambda factor: (len(factor[1]), factor[0]), reverse=True)
    factors = [expr.mul(number, *(Expr((((atom,), 1),)) for atom in atoms)) for number, atoms in ordered]
    return [factor for factor in factors if factor not in (1, divisor)]


def rejoin(index: Dim) -> Dim:
    """Undo divisions: `(e // c) * c + e % c` becomes `e`."""
    for remainder, scale in _remainders(index).items():
        dividend, divisor = remainder.args
        partner = expr.mul(scale, divisor, expr.floordiv(dividend, divisor))
        without = expr.sub(expr.sub(index, partner), expr.mul(scale, Expr((((remainder,), 1),))))
        if _term_count(without) < _term_count(index) - _term_count(scale):
            return rejoin(expr.add(without, expr.mul(scale, dividend)))
    return index


def _remainders(index: Dim) -> dict[Atom, Dim]:
    """The remainders in `index`, and the sum of the factors that each is multiplied by."""
    found: dict[Atom, Dim] = {}
    for monomial, coefficient in index.terms if isinstance(index, Expr) else ():
        for atom in dict.fromkeys(monomial):
            if atom.op == "floormod":
                place = monomial.index(atom)
                others = monomial[:place] + monomial[place + 1 :]
                factor: Dim = Expr(((others, coefficient),)) if others else coefficient
                found[atom] = expr.add(found.get(atom, 0), factor)
    return found


def _term_count(dim: Dim) -> int:
    return len(dim.terms) if isinstance(dim, Expr) else int(dim != 0)


def linear_form(index: Dim, names: Sequence[str]) -> tuple[Dim, tuple[Dim, ...]] | None:
    """`(offset, strides)` with `index == offset + sum(stride * name)`; None if it is not linear in the names."""
    return (index, (0,) * len(names)) if isinstance(index, int) else _linear_form(index, tuple(names))


@lru_cache(_REMEMBERED)
def _linear_form(index: Expr, names: Sequence[str]) -> tuple[Dim, tuple[Dim, ...]] | None:
    rest: list[tuple[Monomial, int]] = []
    strides: dict[str, list[tuple[Monomial, int]]] = {}
    wanted = set(names)
    for monomial, coefficient in index.terms:
        used = [atom for atom in monomial if not wanted.isdisjoint(atom.symbols)]
        if not used:
            rest.append((monomial, coefficient))
        elif len(used) == 1 and used[0].op == "symbol":
            others = tuple(atom for atom in monomial if atom is not used[0])
            strides.setdefault(used[0].key, []).append((others, coefficient))
        else:
            return None
    # Removing a common factor keeps the order of terms.
    return expr.from_ordered(rest), tuple(expr.from_ordered(strides.get(name, ())) for name in names)


def name_of(index: Dim) -> str:
    """The name that an index consists of; empty if it is anything else."""
    if isinstance(index, Expr) and len(index.terms) == 1:
        ((atoms, coefficient),) = index.terms
        if coefficient == 1 and len(atoms) == 1 and atoms[0].op == "symbol":
            return atoms[0].key
    return ""

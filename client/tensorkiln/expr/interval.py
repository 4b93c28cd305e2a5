"""Interval arithmetic: bounds of a dim from the bounds of its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .algebra import Atom, Dim, Expr, Monomial, add, free_symbols, mul
from .substitution import substitute

Interval: TypeAlias = tuple[int, int]


def bounds(dim: Dim, ranges: Mapping[str, Interval]) -> Interval:
    """An inclusive interval that holds every value of `dim`; exact for one symbol at degree one.

    KeyError when a symbol has no range. The interval is not clipped to 64 bits.
    """
    if isinstance(dim, int):
        return dim, dim
    low = high = 0
    for monomial, coefficient in dim.terms:
        term = (coefficient, coefficient)
        for atom in monomial:
            term = _times(term, _atom_bounds(atom, ranges))
        low, high = low + term[0], high + term[1]
    return low, high


def _times(left: Interval, right: Interval) -> Interval:
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _atom_bounds(atom: Atom, ranges: Mapping[str, Interval]) -> Interval:
    if atom.op == "symbol":
        return ranges[atom.key]
    args = [bounds(arg, ranges) for arg in atom.args]
    if atom.op == "max":
        return max(low for low, _ in args), max(high for _, high in args)
    if atom.op == "min":
        return min(low for low, _ in args), min(high for _, high in args)
    (low, high), (divisor_low, divisor_high) = args
    extent = max(abs(low), abs(high))
    largest_divisor = max(abs(divisor_low), abs(divisor_high))
    if divisor_low <= 0 <= divisor_high:
        # The divisor may be zero, which has no value; for any other divisor, |quotient| <= |dividend|.
        return (-extent, extent) if atom.op in ("idiv", "floordiv") else (-largest_divisor, largest_divisor)
    if atom.op == "floordiv":
        corners = [a // b for a in (low, high) for b in (divisor_low, divisor_high)]
        return min(corners), max(corners)
    if atom.op == "idiv":
        corners = [_truncated(a, b) for a in (low, high) for b in (divisor_low, divisor_high)]
        return (min(*corners, 0) if low <= 0 <= high else min(corners)), max(corners)
    if atom.op == "floormod":
        return (
            (0, min(divisor_high - 1, high) if low >= 0 else divisor_high - 1)
            if divisor_low > 0
            else (divisor_low + 1, 0)
        )
    limit = min(largest_divisor - 1, extent)
    return (-limit if low < 0 else 0), (limit if high > 0 else 0)


def is_nonnegative(dim: Dim, ranges: Mapping[str, Interval], extents: Mapping[str, Dim] | None = None) -> bool:
    """Whether `dim >= 0` can be proven.

    `ranges` bounds the symbols by numbers. `extents` names loop indices: each runs over `0 .. extent - 1`, an extent
    being a dim over the symbols, so that `n - 1 - i >= 0` is provable for an index `i` of extent `n`.
    """
    extents = extents or {}
    return _proven(dim, ranges, extents, tuple(sorted(free_symbols(dim) & extents.keys())))


def _proven(dim: Dim, ranges: Mapping[str, Interval], extents: Mapping[str, Dim], indices: tuple[str, ...]) -> bool:
    if isinstance(dim, int):
        return dim >= 0
    if not indices:
        return bounds(dim, _with_index_ranges(dim, ranges, extents))[0] >= 0
    index, rest = indices[0], indices[1:]
    factor = slope(dim, index)
    if factor is None:
        return bounds(dim, _with_index_ranges(dim, ranges, extents))[0] >= 0
    low, high = bounds(factor, _with_index_ranges(factor, ranges, extents))
    if low >= 0:
        return _proven(substitute(dim, {index: 0}), ranges, extents, rest)
    last = add(extents[index], -1)
    if high <= 0:
        return _proven(substitute(dim, {index: last}), ranges, extents, rest)
    return all(_proven(substitute(dim, {index: end}), ranges, extents, rest) for end in (0, last))


def _with_index_ranges(dim: Dim, ranges: Mapping[str, Interval], extents: Mapping[str, Dim]) -> dict[str, Interval]:
    known = dict(ranges)
    for name in free_symbols(dim) & extents.keys():
        # An extent may depend on other indices: the last tile of a tiled loop is shorter than the others.
        extent = extents[name]
        known[name] = (0, max(bounds(extent, _with_index_ranges(extent, ranges, extents))[1] - 1, 0))
    return known


def slope(dim: Expr, name: str) -> Dim | None:
    """The coefficient of the symbol `name` in `dim`, without it; None where `dim` is not linear in it."""
    found: Dim = 0
    for monomial, coefficient in dim.terms:
        its = None
        for atom in monomial:
            if name in atom.symbols:
                if its is not None or atom.op != "symbol":
                    return None
                its = atom
        if its is not None:
            others = coefficient if len(monomial) == 1 else _product(monomial, its, coefficient)
            found = add(found, others) if found else others
    return found


def _product(monomial: Monomial, without: Atom, coefficient: int) -> Dim:
    return mul(coefficient, *(Expr((((atom,), 1),)) for atom in monomial if atom is not without))

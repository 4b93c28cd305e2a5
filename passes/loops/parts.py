"""Divide loops into parts, so that reads at quotients and remainders of their indices become linear.

A reshape that merges dimensions of a permuted value, as the heads of attention before their projection or the windows
of an image, reads at the quotient and the remainder of its index. Over the loops of the parts both are linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from tensorkiln import expr
from tensorkiln.expr import Dim

from .domain import Loop
from .index_space import IndexSpace, name_of


class Parts(NamedTuple):
    """The `loops` with some of them in parts, and the indices of those in terms of the parts."""

    loops: tuple[Loop, ...]
    values: dict[str, Dim]


def in_parts(loops: Iterable[Loop], read: Iterable[Dim], space: IndexSpace, *, all_kinds: bool = True) -> Parts | None:
    """The loops in the parts by which the dims `read` divide them, without `all_kinds` only reductions; None if no loop
    is divided.
    """
    divisors: dict[str, set[int]] = defaultdict(set)
    for dim in read:
        for name, divisor in _divisors(dim):
            divisors[name].add(divisor)
    found: list[Loop] = []
    values: dict[str, Dim] = {}
    for loop in loops:
        may_divide = all_kinds or loop.is_reduction
        extents = _extents(loop.extent, sorted(divisors[loop.name])) if may_divide else []
        if len(extents) < 2:
            found.append(loop)
            continue
        parts = [Loop(f"{loop.name}_{number}", extent, loop.is_reduction) for number, extent in enumerate(extents)]
        values[loop.name] = space.flatten(tuple(space.add(part.name, part.extent) for part in parts), extents)
        found += parts
    return Parts(tuple(found), values) if values else None


def _divisors(dim: Dim) -> Iterator[tuple[str, int]]:
    """The symbols that are divided by a constant in `dim`, and the constants."""
    if isinstance(dim, int):
        return
    for atom in (atom for monomial, _ in dim.terms for atom in monomial if atom.op != "symbol"):
        divided = _quotient(atom.args[0]) if atom.op in ("floordiv", "floormod") else None
        if divided is not None and isinstance(atom.args[1], int):
            name, divisor = divided
            # A remainder of a quotient ends a part of the product of both divisors.
            yield from ((name, each) for each in (divisor, divisor * atom.args[1]) if each > 1)
        else:
            yield from (found for argument in atom.args for found in _divisors(argument))


def _quotient(dim: Dim) -> tuple[str, int] | None:
    """A symbol and the constant that `dim` is its quotient by; None if it is anything else."""
    if name := name_of(dim):
        return name, 1
    if isinstance(dim, int) or len(dim.terms) != 1:
        return None
    ((atoms, coefficient),) = dim.terms
    if coefficient != 1 or len(atoms) != 1 or atoms[0].op != "floordiv" or not isinstance(by := atoms[0].args[1], int):
        return None
    inner = _quotient(atoms[0].args[0])
    return None if inner is None or by < 1 else (inner[0], inner[1] * by)


def _extents(extent: Dim, divisors: list[int]) -> list[Dim]:
    """The extents of the parts, the outer one first; none if a divisor does not divide the next one or the extent."""
    ends: list[Dim] = [1, *divisors, extent]
    parts: list[Dim] = []
    for inner, outer in pairwise(ends):
        quotient, rest = expr.split_multiple(outer, inner)
        if rest != 0:
            return []
        parts.append(quotient)
    return [part for part in reversed(parts) if part != 1]

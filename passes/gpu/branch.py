"""Code that only some threads run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce

from dialect.mlir import arith, ir
from passes.emit import regions
from passes.emit.index_emission import IndexEmitter
from passes.loops.index_space import IndexSpace
from tensorkiln.expr import Dim

Test = tuple[str, Dim, Dim]
"""`("ult" | "eq", left, right)`: a comparison of two nonnegative indices."""


def within(places: Sequence[Dim], extents: Sequence[Dim], space: IndexSpace) -> list[Test]:
    """Tests that nonnegative `places` are below their extents, for those that may not be."""
    pairs = zip(places, extents, strict=True)
    return [("ult", place, extent) for place, extent in pairs if not space.is_within(place, extent)]


@contextmanager
def where(tests: Sequence[Test], index: IndexEmitter) -> Generator[IndexEmitter]:
    """The region that runs if all tests hold, and an emitter for it; without tests, the current region."""
    if not tests:
        yield index
        return
    with regions.where(holds(tests, index), index) as inside:
        yield inside


def holds(tests: Sequence[Test], index: IndexEmitter) -> ir.Value:
    """Whether all tests hold."""
    compared = [arith.cmpi(getattr(arith.CmpIPredicate, how), index(a), index(b)) for how, a, b in tests]
    return reduce(arith.andi, compared)

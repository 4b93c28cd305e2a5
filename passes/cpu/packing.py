"""How an operand of a contraction is packed or read in place, whatever its layout: strides, windows, padding.

The reads of an operand are linear in the loops, so each address and condition is the sum of a part that depends on the
outer index and a part that depends on the inner one. Both parts come from tables computed once per block; only an inner
part that equals the inner index needs no table, and is read by whole vectors. The inner part of an address is counted
from the first inner element of the block, so that it has 32 bits in operands of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from passes.emit.memory import CACHE_LINE
from passes.loops.accesses import Access, Panels
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop
from passes.loops.index_space import IndexSpace, linear_form
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

ROW_OFFSETS, OFFSET_VECTORS = 6, 2
"""Most rows of a tile whose offsets all stay in registers, and most vectors of each row.

Tiles of four vectors, which 32 registers hold, do not pay: twice as many whole rows of two read weights half as often.
"""
NEAR_BYTES = 256
"""Most bytes between rows that are read in place: rows that are far apart share few cache sets."""
SHORT_RUN = 8
"""Most steps of a run in place that are written out: as a loop, a run of eight takes 1.07 times as long on Zen 3."""
SPREAD_COLUMNS = 128
"""Least columns of a block for which rows that leave out a part of each cache line are packed: in place, each of its
tiles reads these lines. On Zen 3, 128 columns take 0.82 to 0.88 of the time packed, 64 to 96 columns 1.03 to 1.1.
"""
MAX_RUN = 64
"""Most columns of a run of an operand: column blocks begin at the start of a run."""
MAX_OFFSET = (1 << 31) - 1
"""Largest entry of a table with 32 bits."""
MAX_ENTRIES = 1 << 13
"""Limit of a block's columns and steps: twice as many as those of bytes."""


@dataclass(frozen=True, slots=True)
class Form:
    """A linear form of the loops: a base, and a stride for each outer and each inner loop."""

    base: Dim
    outer: tuple[Dim, ...]
    inner: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """An operand to pack: its address and conditions over outer and inner loops."""

    dtype: DType
    operand: int
    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    address: Form
    conditions: tuple[Form, ...]

    @property
    def forms(self) -> tuple[Form, ...]:
        """The address, then the conditions."""
        return (self.address, *self.conditions)

    @property
    def is_contiguous(self) -> bool:
        """Whether a vector of inner elements is one load."""
        depends = any(stride != 0 for form in self.conditions for stride in form.inner)
        return not depends and _walks(self.inner, self.address.inner)

    @property
    def step(self) -> Dim:
        """Elements from one inner entry to the next along the innermost loop."""
        return self.address.inner[-1] if self.address.inner else 1

    @property
    def is_transposed(self) -> bool:
        """Whether a vector of outer elements is one load instead."""
        return not self.conditions and not self.is_contiguous and _walks(self.outer, self.address.outer)

    @property
    def inner_tables(self) -> int:
        """How many tables the inner index needs."""
        return 0 if self.is_contiguous else len(self.forms)

    def inner_address(self, first: Dim, space: IndexSpace) -> Dim:
        """The part of the address that depends on the inner index, at the flat index `first`."""
        if self.is_contiguous:
            return first
        places = space.unflatten(first, [loop.extent for loop in self.inner])
        return expr.add(*(expr.mul(place, stride) for place, stride in zip(places, self.address.inner, strict=False)))


def _walks(loops: Sequence[Loop], strides: Sequence[Dim], expected: Dim = 1) -> bool:
    """Whether the loops step through memory contiguously, the innermost one by `expected` elements."""
    for loop, stride in zip(reversed(loops), reversed(strides), strict=True):
        if stride != expected:
            return False
        expected = expr.mul(expected, loop.extent)
    return True


def is_addressable(access: Access, inner: Sequence[Loop], space: IndexSpace) -> bool:
    """Whether tables with 32 bits hold the conditions of an access, and the offsets of inner elements of a block."""
    if access.panels is not None:
        return True
    strides = _form(access.load.address, (), inner).inner
    reach = [
        expr.mul(stride, expr.minimum(expr.sub(loop.extent, 1), MAX_ENTRIES))
        for loop, stride in zip(inner, strides, strict=True)
    ]
    largest = sum(_magnitude(each, space) for each in reach)
    conditions = (each for each in access.load.conditions if isinstance(each, int | expr.Expr))
    return max([largest, *(_magnitude(each, space) for each in conditions)]) <= MAX_OFFSET


def _magnitude(dim: Dim, space: IndexSpace) -> int:
    """The largest absolute value."""
    return max(space.largest(dim), space.largest(expr.neg(dim)))


@dataclass(frozen=True, slots=True)
class Packed:
    """An operand in panels over the whole depth: the first at element `first`, each `size` elements after the last.

    The `tile` elements of one step of the depth are contiguous.
    """

    operand: int
    first: Dim
    tile: int
    size: int

    inner_tables: ClassVar[int] = 0
    forms: ClassVar[tuple[Form, ...]] = ()


@dataclass(frozen=True, slots=True)
class InRows:
    """A left operand that is read in place: rows of whole tiles, `stride` elements apart, from element `first` on."""

    operand: int
    first: Dim
    stride: int

    inner_tables: ClassVar[int] = 0
    forms: ClassVar[tuple[Form, ...]] = ()


@dataclass(frozen=True, slots=True)
class InPlace:
    """A left operand that is read in place: rows of a tile `stride` elements apart, runs of `run` contiguous steps.

    The tables of `source` give the start of each tile and each run or, without a stride, of each row of a tile.
    """

    source: Source
    stride: int | None
    run: int

    @property
    def operand(self) -> int:
        return self.source.operand

    inner_tables: ClassVar[int] = 1

    @property
    def forms(self) -> tuple[Form, ...]:
        return self.source.forms


def in_place(source: Source, dtype: DType, tile: tuple[int, int], block: tuple[int, int]) -> InPlace | None:
    """A left operand whose rows are close together; else None.

    A `tile` has rows and vectors, a `block` columns and steps. If the tile height divides the rows, rows have a common
    stride. Otherwise each row has an offset, which pays only if the rows are few, and are read in runs of a vector of
    AVX2 or share elements, which packing would copy for each row.
    """
    if source.conditions or source.dtype is not dtype or not source.outer:
        return None
    extent, stride = source.outer[-1].extent, source.address.outer[-1]
    if not isinstance(stride, int) or not 0 < stride * dtype.itemsize <= NEAR_BYTES:
        return None
    rows, vectors = tile
    columns, block_depth = block
    steps = source.inner[-1].extent if source.address.inner[-1] == 1 else 1
    is_spread = isinstance(steps, int) and 1 < steps < stride and steps * dtype.itemsize < CACHE_LINE
    if is_spread and columns >= SPREAD_COLUMNS:
        return None
    run = gcd(steps, block_depth) if isinstance(steps, int) else 1
    is_whole = isinstance(extent, int) and extent % rows == 0
    pays = run == SHORT_RUN or _overlap(source)
    if not is_whole and not (rows <= ROW_OFFSETS and vectors <= OFFSET_VECTORS and pays):
        return None
    return InPlace(source, stride if is_whole else None, run)


def _overlap(source: Source) -> bool:
    """Whether rows share elements, as windows do: steps of the depth reach from one row's elements to another's."""
    rows, steps = (
        [(loop.extent, stride) for loop, stride in zip(loops, strides, strict=True)]
        for loops, strides in ((source.outer, source.address.outer), (source.inner, source.address.inner))
    )
    return any(
        isinstance(height, int)
        and isinstance(row, int)
        and isinstance(depth, int)
        and isinstance(step, int)
        and 0 < step <= row * (height - 1)
        and step * (depth - 1) >= row
        for height, row in rows
        for depth, step in steps
    )


def packed_of(
    access: Access,
    panels: Panels,
    batch: Sequence[Loop],
    tiled: Sequence[Loop],
    depth: Sequence[Loop],
    names: Sequence[str],
) -> Packed | None:
    """The panels of an access with loops called `names`; None if they are panels of other loops than `tiled`."""
    strides = dict(zip(names, access.strides, strict=True))
    steps = [strides[loop.name] for loop in depth]
    if [loop.name for loop in tiled] != [panels.loop] or not _walks(depth, steps, panels.tile):
        return None
    first = expr.add(access.offset, *(expr.mul(strides[loop.name], expr.symbol(loop.name)) for loop in batch))
    return Packed(access.load.operand, first, panels.tile, panels.size)


def in_runs(access: Access, parts: Contraction, names: Sequence[str], lanes: int) -> Packed | None:
    """A right operand that lies in panels of its innermost columns, in whole vectors of `lanes` elements: a contiguous
    run of columns for each step of the depth. None for any other operand.
    """
    strides = dict(zip(names, access.strides, strict=True))
    *outer, inner = parts.columns
    tile, size = inner.extent, strides[outer[-1].name] if outer else 0
    is_read = access.load.dtype is parts.dtype and not access.load.conditions and access.panels is None
    if (
        not (is_read and isinstance(tile, int) and isinstance(size, int) and size)
        or tile > MAX_RUN
        or tile & (tile - 1)
        or tile % lanes
        or size % tile
    ):
        return None
    steps, between = [strides[loop.name] for loop in parts.depth], [strides[loop.name] for loop in outer]
    if strides[inner.name] != 1 or not _walks(parts.depth, steps, tile) or not _walks(outer, between, size):
        return None
    batch = (expr.mul(strides[loop.name], expr.symbol(loop.name)) for loop in parts.batch)
    return Packed(access.load.operand, expr.add(access.offset, *batch), tile, size)


def source_of(access: Access, outer: Sequence[Loop], inner: Sequence[Loop]) -> Source:
    """The operand of an access, to be packed by `outer` and `inner` loops."""
    load = access.load
    return Source(
        dtype=load.dtype,
        operand=load.operand,
        outer=tuple(outer),
        inner=tuple(inner),
        address=_form(load.address, outer, inner),
        conditions=tuple(_form(c, outer, inner) for c in load.conditions if isinstance(c, int | expr.Expr)),
    )


def _form(dim: Dim, outer: Sequence[Loop], inner: Sequence[Loop]) -> Form:
    form = linear_form(dim, [loop.name for loop in (*outer, *inner)])
    assert form is not None, "a contraction's reads and conditions are linear in its loops"
    base, strides = form
    return Form(base, strides[: len(outer)], strides[len(outer) :])

"""Copy a block of a contraction's operand into panels, whatever its layout: strides, windows, padding.

The reads of an operand are linear in the loops, so their address is a part that depends on the outer index plus a part
that depends on the inner one; and so is each condition. Inner parts of flattened loops come from a table that is
computed once for a block. The copy runs over the inner index in vectors: contiguous loads where it can, gathers elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from dialect.mlir import arith, ir, memref, scf, vector
from passes.schedule.contraction import Access
from passes.schedule.domain import Loop, extent_of
from passes.to_linalg.index_emission import IndexEmitter
from passes.to_linalg.index_space import linear_form
from passes.to_linalg.memory import stored_type, strided_view
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

INDEX_BITS = 32
"""Of the offsets in a table and of gather indices."""
MAX_GATHER_ELEMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class Form:
    """A linear form of the loops as base + outer part + inner part; `stride` is the inner part's, None for a table."""

    base: Dim
    outer: tuple[Dim, ...]
    inner: tuple[Dim, ...]
    stride: Dim | None

    @property
    def needs_table(self) -> bool:
        return self.stride is None


@dataclass(frozen=True, slots=True)
class Source:
    """An operand to pack: its address and its conditions over outer and inner loops, `elements` in all."""

    dtype: DType
    operand: int
    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    address: Form
    conditions: tuple[Form, ...]
    elements: Dim

    @property
    def tables(self) -> list[Form]:
        """The forms whose inner part comes from a table."""
        return [form for form in (self.address, *self.conditions) if form.needs_table]

    @property
    def is_contiguous(self) -> bool:
        """Whether a vector of inner elements is one load."""
        return self.address.stride == 1 and all(form.stride == 0 for form in self.conditions)


def source_of(access: Access, outer: Sequence[Loop], inner: Sequence[Loop], elements: Dim) -> Source:
    """The operand of an access, packed by `outer` and `inner` loops."""
    load = access.load
    return Source(
        dtype=load.dtype,
        operand=load.operand,
        outer=tuple(outer),
        inner=tuple(inner),
        address=_form(load.address, outer, inner),
        conditions=tuple(_form(c, outer, inner) for c in load.conditions if isinstance(c, int | expr.Expr)),
        elements=elements,
    )


def _form(dim: Dim, outer: Sequence[Loop], inner: Sequence[Loop]) -> Form:
    form = linear_form(dim, [loop.name for loop in (*outer, *inner)])
    assert form is not None, "a contraction's reads and conditions are linear in its loops"
    base, strides = form
    inner_strides = strides[len(outer) :]
    return Form(base, strides[: len(outer)], inner_strides, _flat_stride(inner, inner_strides))


def _flat_stride(loops: Sequence[Loop], strides: Sequence[Dim]) -> Dim | None:
    """The stride of the flattened loops, or None when they do not walk as one."""
    if not loops or all(stride == 0 for stride in strides):
        return 0
    for place in range(len(loops) - 1):
        if strides[place] != expr.mul(strides[place + 1], loops[place + 1].extent):
            return None
    return strides[-1]


def linear_in(positions: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """The sum of positions times strides."""
    return reduce(expr.add, (expr.mul(p, s) for p, s in zip(positions, strides, strict=True)), 0)


class Packer:
    """Packs blocks of one operand. `tables` are bases of memory for the tables of its source, in order."""

    def __init__(self, source: Source, memory: ir.Value, tables: Sequence[ir.Value], lanes: int) -> None:
        self.source, self.memory, self.lanes = source, memory, lanes
        self.tables = dict(zip((id(form) for form in source.tables), tables, strict=True))

    def fill_tables(self, start: Dim, count: Dim, index: IndexEmitter) -> None:
        """Compute the inner parts for the flat inner indices `start .. start + count - 1`."""
        if not self.source.tables:
            return
        word = ir.IntegerType.get_signless(INDEX_BITS)
        loop = scf.ForOp(index(0), index(count), index(1))
        with ir.InsertionPoint(loop.body):
            here = index.inside({"entry": loop.induction_variable})
            entry = here.space.add("entry", count)
            extents = [own.extent for own in self.source.inner]
            positions = here.space.unflatten(expr.add(start, entry), extents)
            for form in self.source.tables:
                value = arith.index_cast(word, here(linear_in(positions, form.inner)))
                memref.store(value, strided_view(self.tables[id(form)], entry, (), (), here), [])
            scf.YieldOp([])

    def outer_parts(self, position: Dim, index: IndexEmitter) -> list[Dim]:
        """Base and outer part of the address and of each condition, at a flat outer index."""
        positions = index.space.unflatten(position, [loop.extent for loop in self.source.outer])
        forms = (self.source.address, *self.source.conditions)
        return [expr.add(form.base, linear_in(positions, form.outer)) for form in forms]

    def vector_at(self, parts: Sequence[ir.Value], start: Dim, place: Dim, mask: ir.Value, index: IndexEmitter) -> ir.Value:
        """The elements at flat inner indices `start + place` and following, zero where the mask or a condition fails.

        `place` counts from the beginning of the block, as the tables do. `parts` are those of `outer_parts`.
        """
        element = stored_type(self.source.dtype)
        kind = ir.VectorType.get([self.lanes], element)
        zero = vector.BroadcastOp(kind, arith.constant(element, 0.0 if self.source.dtype.is_float else 0)).result
        for part, form in zip(parts[1:], self.source.conditions, strict=True):
            mask = arith.andi(mask, self._holds(part, form, start, place, index))
        if self.source.is_contiguous:
            names = {"address": arith.addi(parts[0], index(expr.add(start, place)))}
            view = strided_view(self.memory, expr.symbol("address"), (self.lanes,), (1,), index.inside(names))
            return vector.MaskedLoadOp(kind, view, [index(0)], mask, zero).result
        offsets = self._inner_vector(self.source.address, start, place, index)
        whole = strided_view(self.memory, 0, (self.source.elements,), (1,), index)
        return vector.GatherOp(kind, whole, [parts[0]], offsets, mask, zero).result

    def _holds(self, part: ir.Value, form: Form, start: Dim, place: Dim, index: IndexEmitter) -> ir.Value:
        word = ir.IntegerType.get_signless(INDEX_BITS)
        kind = ir.VectorType.get([self.lanes], word)
        own = vector.BroadcastOp(kind, arith.index_cast(word, part)).result
        total = arith.addi(own, self._inner_vector(form, start, place, index))
        zero = vector.BroadcastOp(kind, arith.constant(word, 0)).result
        return arith.cmpi(arith.CmpIPredicate.sge, total, zero)

    def _inner_vector(self, form: Form, start: Dim, place: Dim, index: IndexEmitter) -> ir.Value:
        word = ir.IntegerType.get_signless(INDEX_BITS)
        kind = ir.VectorType.get([self.lanes], word)
        if form.stride is None:
            view = strided_view(self.tables[id(form)], place, (self.lanes,), (1,), index)
            return vector.LoadOp(kind, view, [index(0)]).result
        first = vector.BroadcastOp(kind, arith.index_cast(word, index(expr.add(start, place)))).result
        steps = arith.index_cast(kind, vector.StepOp(ir.VectorType.get([self.lanes], ir.IndexType.get())).result)
        stride = vector.BroadcastOp(kind, arith.index_cast(word, index(form.stride))).result
        return arith.muli(arith.addi(first, steps), stride)


def inner_count(source: Source) -> Dim:
    """How many flat inner indices there are."""
    return extent_of(source.inner)

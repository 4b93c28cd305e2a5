"""Rows of large results, computed in memory that stays in a cache, and copied to the result past the cache.

A store through the cache first reads its line from memory. On a core of Granite Rapids, writing 64 MiB past the cache
takes 0.6 of the time, and 32 MiB as long. LLVM makes the vectors of a row, and cannot align them, since a row may begin
anywhere in a cache line. The copy aligns its own; it is one function for all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dialect.mlir import arith, func, ir, memref, scf, vector
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import loop
from passes.emit.stage_emission import StageEmitter
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, inner_loops
from passes.loops.domain import extent_of
from passes.loops.index_space import IndexSpace, linear_form
from passes.scalar.registers import stored_type
from passes.schedule.choice import Scratch
from passes.schedule.tiling import row_size, row_start
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .frame import Frame
from .machine import Machine
from .past_cache import store_past
from .shared_functions import module_of, shared_function

LARGE: Final = 48 << 20
"""Bytes of a result whose rows are staged."""
POINTS: Final = 1024
"""Points of a row that a long loop is cut into: while one is copied, memory has time for what the next one reads."""
ROW_BYTES: Final = range(1 << 10, (64 << 10) + 1)
"""Bytes of a row: many whole cache lines, and few enough for a core's own cache."""


@dataclass(frozen=True, slots=True)
class StagedRow:
    """The current row of a result: `points` elements from `start` on, and `scratch` memory for a whole row.

    The result has `size` bytes. If it `is_large` at some calls only, its rows are staged at those.
    """

    operand: int
    scratch: Scratch
    start: Dim
    points: Dim
    size: Dim
    is_large: bool


def may_be_staged(body: KernelBody, machine: Machine) -> bool:
    """Whether the results of the last stage are large, and the target has stores past the cache.

    Results that are large at some calls are staged if their elements are looked up: others gain a fifth of the time at
    those calls, and take a third more to compile.
    """
    if machine.vectors.masked_lanes == 0:
        return False
    sizes, looks_up = [_bytes_of(body, entry.operand) for entry in body.stages[-1].stores], _looks_up(body)
    return all(_is_large(body, size) or (looks_up and body.space.largest(size) >= LARGE) for size in sizes)


def _looks_up(body: KernelBody) -> bool:
    """Whether the last stage reads at indices that are data."""
    addresses = (load.address for load in loads(body.stages[-1].elements, body.nodes))
    return any(not body.nodes.dynamic.keys().isdisjoint(expr.free_symbols(address)) for address in addresses)


def _is_large(body: KernelBody, size: Dim) -> bool:
    """Whether a result of `size` bytes is large at every call."""
    return -body.space.largest(expr.neg(size)) >= LARGE


def _bytes_of(body: KernelBody, operand: int) -> Dim:
    value = body.operands[operand]
    return expr.mul(expr.product(value.shape), value.dtype.itemsize)


def staged_rows(body: KernelBody, machine: Machine) -> tuple[StagedRow, ...]:
    """The rows of the results of the last stage, if it is a map that writes each row from end to end."""
    stage = body.stages[-1]
    if stage.combine is not None or not may_be_staged(body, machine):
        return ()
    inner = inner_loops(body, stage)
    form = linear_form(stage.domain.address, [each.name for each in inner])
    if form is None or form[1] != tuple(extent_of(inner[place + 1 :]) for place in range(len(inner))):
        return ()
    read = {load.operand for each in body.stages for load in loads(each.elements, body.nodes)}
    found: list[StagedRow] = []
    for entry in stage.stores:
        scratch = Scratch(entry.root.dtype, row_size(body, entry.operand))
        most = body.space.largest(scratch.elements) * entry.root.dtype.itemsize
        if body.is_local(entry.operand) or entry.operand in read or most not in ROW_BYTES:
            return ()
        size, start = _bytes_of(body, entry.operand), row_start(body, entry.operand)
        found.append(StagedRow(entry.operand, scratch, start, extent_of(inner), size, _is_large(body, size)))
    return tuple(found)


class _Place(NamedTuple):
    """Where a row goes: to `staged` memory if the result `is_large`, else directly to the result.

    `is_large` is None if it always is. `start` names the row's first element in the memory that is chosen.
    """

    row: StagedRow
    result: ir.Value
    staged: ir.Value
    start: str
    is_large: ir.Value | None


class Staging:
    """Rows under construction: `emit` emits the last stage into scratch memory; `direct` addresses the results.

    If a result is large at some calls only, `emit` addresses what is chosen at the call. A second loop would take as
    long again to compile.
    """

    def __init__(
        self,
        frame: Frame,
        rows: Sequence[StagedRow],
        direct: StageEmitter,
        space: IndexSpace,
        scratch: Iterator[ir.Value],
    ) -> None:
        memory, index = direct.memory, IndexEmitter(space, frame.symbols)
        bases, starts = dict(memory.bases), dict(memory.row_starts)
        self.frame = frame
        self.places: list[_Place] = []
        for number, row in enumerate(rows):
            place = _Place(row, bases[row.operand], next(scratch), f"row_start{number}", _is_large_at_call(row, index))
            self.places.append(place)
            bases[row.operand], starts[row.operand] = place.staged, row.start
            if place.is_large is not None:
                space.bound(place.start, 0, max(space.largest(row.start), 0))
                bases[row.operand] = arith.select(place.is_large, place.staged, place.result)
                starts[row.operand] = expr.sub(row.start, symbol(place.start))
        own = replace(memory, bases=bases, row_starts=starts)
        self.emit = StageEmitter(direct.nodes, own, direct.traits, direct.facts)

    def at(self, index: IndexEmitter) -> IndexEmitter:
        """With the names that `emit` needs."""
        chosen = (place for place in self.places if place.is_large is not None)
        return index.inside(
            {place.start: arith.select(place.is_large, index(0), index(place.row.start)) for place in chosen}
        )

    def copy(self, index: IndexEmitter) -> None:
        """Emit the copies of a row to the results; a fence has to follow all rows."""
        for row, result, staged, _, is_large in self.places:
            if is_large is None:
                _copy_past(self.frame, row, result, staged, index)
                continue
            with ir.InsertionPoint(scf.IfOp(is_large).then_block):
                _copy_past(self.frame, row, result, staged, index.inside({}))
                scf.YieldOp([])


def _is_large_at_call(row: StagedRow, index: IndexEmitter) -> ir.Value | None:
    """Whether the result of a row is large at this call; None if it always is."""
    return None if row.is_large else arith.cmpi(arith.CmpIPredicate.uge, index(row.size), index(LARGE))


def _copy_past(frame: Frame, row: StagedRow, result: ir.Value, staged: ir.Value, index: IndexEmitter) -> None:
    """Copy a staged row to its place in the result."""
    dtype = row.scratch.dtype
    lanes = frame.machine.vectors.lanes(dtype)
    kind = ir.MemRefType.get([], stored_type(dtype))

    def define(arguments: Sequence[ir.Value]) -> None:
        _Copy(arguments, dtype, lanes).define()

    name = f"past_{dtype}_{lanes}"
    shared_function(module_of(frame.entry), name, [kind, kind, *[ir.IndexType.get()] * 2], define, stays_scalar=True)
    func.CallOp([], name, [result, staged, index(row.start), index(row.points)])


class _Copy:
    """Emits a copy of `count` elements to those of the result from `first` on."""

    def __init__(self, arguments: Sequence[ir.Value], dtype: DType, lanes: int) -> None:
        self.result, self.staged, self.first, self.count = arguments
        self.dtype, self.lanes = dtype, lanes

    def define(self) -> None:
        """Vectors from the first element that begins one in memory, and the elements around them one by one."""
        space = IndexSpace(dict.fromkeys(("first", "count", "head", "vectors", "at"), (0, 1 << 40)))
        index = IndexEmitter(space, {"first": self.first, "count": self.count})
        ahead = self._head(index)
        vectors = arith.divui(arith.subi(self.count, ahead), index(self.lanes))
        here = index.inside({"head": ahead, "vectors": vectors})
        head, count = symbol("head"), symbol("count")
        self._elements(0, head, here)
        with loop("at", head, expr.sub(count, self.lanes - 1), self.lanes, here) as inside:
            kind = ir.VectorType.get([self.lanes], stored_type(self.dtype))
            staged, result = self._views((self.lanes,), (1,), inside)
            value = vector.LoadOp(kind, staged, [inside(0)]).result
            store_past(value, result, [inside(0)], self.lanes * self.dtype.itemsize)
        self._elements(expr.add(head, expr.mul(symbol("vectors"), self.lanes)), count, here)

    def _head(self, index: IndexEmitter) -> ir.Value:
        """The elements before the first whole vector; results are aligned to their elements."""
        size = self.dtype.itemsize
        start = arith.muli(self.first, index(size))
        place = arith.addi(memref.extract_aligned_pointer_as_index(self.result), start)
        ahead = arith.remui(arith.subi(index(0), place), index(self.lanes * size))
        return arith.minsi(arith.divui(ahead, index(size)), self.count)

    def _elements(self, begin: Dim, end: Dim, index: IndexEmitter) -> None:
        with loop("at", begin, end, 1, index) as inside:
            staged, result = self._views((), (), inside)
            memref.store(memref.load(staged, []), result, [])

    def _views(self, sizes: Sequence[int], strides: Sequence[int], index: IndexEmitter) -> tuple[ir.Value, ir.Value]:
        """The element `at` of the staged row, and its place in the result."""
        place = expr.add(symbol("first"), symbol("at"))
        staged = strided_view(self.staged, symbol("at"), sizes, strides, index)
        return staged, strided_view(self.result, place, sizes, strides, index)

"""Rows of large results, computed in memory that stays in a cache, and copied to the result past the cache.

A store through the cache first reads its line from memory. On a core of Granite Rapids, writing 64 MiB past the cache
takes 0.6 of the time, and 32 MiB as long. LLVM makes the vectors of a row, and cannot align them, since a row may begin
anywhere in a cache line. The copy aligns its own; it is one function for all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dialect.mlir import arith, func, ir, memref, vector
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
    """The current row of a result: `points` elements from `start` on, and `scratch` memory for a whole row."""

    operand: int
    scratch: Scratch
    start: Dim
    points: Dim


def is_large(body: KernelBody, machine: Machine) -> bool:
    """Whether the results of the last stage are large at every call, and the target has stores past the cache.

    For results that are large at some calls, a kernel would need its loops twice, and twice the time to compile.
    """
    sizes: list[Dim] = []
    for entry in body.stages[-1].stores:
        value = body.operands[entry.operand]
        sizes.append(expr.mul(expr.product(value.shape), value.dtype.itemsize))
    return machine.vectors.masked_lanes > 0 and all(-body.space.largest(expr.neg(size)) >= LARGE for size in sizes)


def staged_rows(body: KernelBody, machine: Machine) -> tuple[StagedRow, ...]:
    """The rows of the results of the last stage, if it is a map that writes each row from end to end."""
    stage = body.stages[-1]
    if stage.combine is not None or not is_large(body, machine):
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
        found.append(StagedRow(entry.operand, scratch, row_start(body, entry.operand), extent_of(inner)))
    return tuple(found)


class Staging:
    """Rows under construction: `emit` emits the last stage into scratch memory; `direct` addresses the results."""

    def __init__(
        self, frame: Frame, rows: Sequence[StagedRow], direct: StageEmitter, scratch: Iterator[ir.Value]
    ) -> None:
        memory = direct.memory
        self.frame, self.rows = frame, [(row, memory.bases[row.operand], next(scratch)) for row in rows]
        bases = {**memory.bases, **{row.operand: staged for row, _, staged in self.rows}}
        starts = {**memory.row_starts, **{row.operand: row.start for row in rows}}
        own = replace(memory, bases=bases, row_starts=starts)
        self.emit = StageEmitter(direct.nodes, own, direct.traits, direct.facts)

    def copy(self, index: IndexEmitter) -> None:
        """Emit the copies of a row to the results; a fence has to follow all rows."""
        for row, result, staged in self.rows:
            _copy_past(self.frame, row, result, staged, index)


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

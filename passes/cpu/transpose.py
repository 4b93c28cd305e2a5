"""The strategy for maps that read across the loop along which they write, as transpositions do.

A tile is read in squares of vectors, which are transposed in registers, and written by whole cache lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from dialect.mlir import arith, ir, vector
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import CACHE_LINE, Memory, strided_view
from passes.emit.regions import branches, loop, where
from passes.emit.squares import transposed
from passes.emit.vector_emission import VectorEmitter
from passes.loops.accesses import linear_access, loads
from passes.loops.body import KernelBody, Stage, inner_loops
from passes.loops.collapse import collapse
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index, linear_form
from passes.loops.scalar_dag import Load
from passes.origins import at_stage
from passes.scalar.registers import stored_type, zero
from passes.schedule.choice import Choice
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.nests import Nest, axes_of, takes_vectors
from passes.schedule.record import kernel_item, on_processors, placed
from passes.schedule.tiling import ROW, Rows, block_name, read_across, rows_per_group, with_rows
from passes.schedule.work import moved_bytes, operations
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.schedule import KernelItem

from .cost import ACCESS, OPERATION, PACK_SQUARE
from .frame import Frame
from .machine import Machine
from .past_cache import conditions, emit_conditions, fence, store_past
from .rows import for_each_row

NAME: Final = "transpose"
TILE: Final = 64
"""Rows and columns of a tile: a read runs through several cache lines before the next row, so that the processor
prefetches it."""
WIDE: Final = frozenset({4, 8})
"""Bytes of elements that masked loads and stores take."""
LINE, SQUARE, PART = "line", "square", "part"


@dataclass(frozen=True, slots=True)
class Transposition:
    """A map whose `reads` are contiguous along the row loop `across`, but not along the last one."""

    body: KernelBody
    across: int
    reads: tuple[Load, ...]

    @property
    def stage(self) -> Stage:
        """The map."""
        return self.body.stages[0]

    @property
    def split(self) -> Rows:
        """Tiles of the two loops; the others run over tiles."""
        tiled = (self.across, len(self.body.rows) - 1)
        return tuple(TILE if number in tiled else ROW for number in range(len(self.body.rows)))

    def lanes(self, machine: Machine) -> int:
        """Elements of a vector, which are the rows and columns of a square; 0 if the target has no masked vectors."""
        return machine.vectors.lanes(self.reads[0].dtype) if machine.vectors.masked_lanes else 0


def find(body: KernelBody) -> Transposition | None:
    """Match a map of 32-bit and 64-bit elements of which vectors along its last loop can express the rest."""
    shared = collapse(body)
    across = read_across(shared)
    if across is None:
        return None
    (stage,), nodes, last = shared.stages, shared.nodes, shared.rows[-1]
    reads = tuple(load for load in loads(stage.elements, nodes) if _is_across(shared, load, shared.rows[across], last))
    in_memory = [load.dtype for load in loads(stage.elements, nodes)] + [entry.root.dtype for entry in stage.stores]
    is_wide = all(dtype.itemsize in WIDE for dtype in in_memory)
    if not reads or not is_wide or len({load.dtype.itemsize for load in reads}) > 1:
        return None
    expressed = takes_vectors(stage, last, nodes, frozenset(reads))
    return Transposition(shared, across, reads) if expressed else None


def _is_across(body: KernelBody, load: Load, across: Loop, last: Loop) -> bool:
    """Whether a read is contiguous along the loop `across`, and its rows are apart along the last one."""
    access = linear_access(load, body.nodes, [across.name, last.name])
    if access is None or load.conditions:
        return False
    beside, apart = access.strides
    return beside == 1 and apart not in (0, 1) and body.space.is_nonnegative(apart)


def candidates(problem: Transposition, machine: Machine) -> Iterator[Choice]:
    """One candidate: work-groups of tiles."""
    lanes = problem.lanes(machine)
    if not lanes:
        return
    shared, body, stage = problem.body, with_rows(problem.body, problem.split), problem.stage
    per_group = rows_per_group(body)
    sizes = {block_name(loop): (TILE,) for loop, size in zip(shared.rows, problem.split, strict=True) if size == TILE}
    axes = placed(body.rows, [axes_of(body, Nest(body.stages[0], inner_loops(body, body.stages[0])), lanes)], sizes)
    groups = expr.ceildiv(extent_of(body.rows), per_group)
    work = operations(shared, stage)
    direct = len(loads(stage.elements, shared.nodes)) - len(problem.reads) + len(stage.stores)

    def cost(at: Evaluate) -> Cost:
        points = at(extent_of(shared.rows))
        cycles = points * (len(problem.reads) * PACK_SQUARE + (work * OPERATION + direct * ACCESS) / lanes)
        return Cost(cycles, moved_bytes(shared, at))

    yield Choice(NAME, kernel_item(shared.function.name, axes, on_processors(groups, per_group)), (), cost)


def realise(problem: Transposition, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame."""
    tiles = _Tiles(problem, frame)
    for_each_row(frame, tiles.body.space, tiles.body.rows, item.context.upcasted, tiles.emit)
    if tiles.goes_past is not None:
        fence(frame)


class _Tiles:
    """Emits the tiles of a transposition."""

    def __init__(self, problem: Transposition, frame: Frame) -> None:
        self.problem, self.traits, self.lanes = problem, frame.machine.traits, problem.lanes(frame.machine)
        self.body = with_rows(problem.body, problem.split)
        (self.stage,) = self.body.stages
        self.across, self.last = inner_loops(self.body, self.stage)
        self.memory = Memory(dict(enumerate(frame.buffers)), {}, frame.entry)
        read = loads(self.stage.elements, self.body.nodes)
        self.reads = [load for load in read if _is_across(self.body, load, self.across, self.last)]
        when = conditions(problem.body, problem.stage, frame.machine)
        self.goes_past = None
        if when is not None and when.lanes == self.lanes:
            index = IndexEmitter(problem.body.space, frame.symbols)
            self.goes_past = emit_conditions(when, self.stage, self.memory.bases, index)

    def emit(self, positions: Index, index: IndexEmitter) -> None:
        """Emit a tile, given its position in each of the row loops."""
        here = index.inside({loop.name: index(at) for loop, at in zip(self.body.rows, positions, strict=True)})
        with at_stage(self.body.nodes, self.stage):
            line = max(CACHE_LINE // self.stage.stores[0].root.dtype.itemsize, self.lanes)
            rest = expr.sub(self.last.extent, symbol(LINE))
            is_even = isinstance(self.last.extent, int) and self.last.extent % line == 0
            with (
                loop(LINE, 0, self.last.extent, line, here) as inside,
                loop(SQUARE, 0, self.across.extent, self.lanes, inside) as inside,
                loop(PART, 0, line if is_even else expr.minimum(line, rest), self.lanes, inside) as inside,
            ):
                self._square(inside)

    def _square(self, index: IndexEmitter) -> None:
        """Emit a square, under masks if it is cut off."""
        left = self._left()
        pieces = self.across, self.last
        cut_off = [points for points, piece in zip(left, pieces, strict=True) if piece.extent != TILE]
        if not cut_off:
            self._whole(index)
            return
        fits = (arith.cmpi(arith.CmpIPredicate.sge, index(points), index(self.lanes)) for points in cut_off)
        for is_whole, region in branches(reduce(arith.andi, fits), index):
            with region as inside:
                if is_whole:
                    self._whole(inside)
                else:
                    self._part(inside, *left)

    @property
    def _loops(self) -> Sequence[Loop]:
        """The loop across and the last one, before they were cut into tiles."""
        return [loop for loop, size in zip(self.problem.body.rows, self.problem.split, strict=True) if size == TILE]

    def _left(self) -> list[Dim]:
        """The points from the square to the end of each of these loops."""
        places = symbol(SQUARE), expr.add(symbol(LINE), symbol(PART))
        starts = (expr.mul(symbol(block_name(loop)), TILE) for loop in self._loops)
        ends = (loop.extent for loop in self._loops)
        return [expr.sub(end, expr.add(start, at)) for end, start, at in zip(ends, starts, places, strict=True)]

    def _whole(self, index: IndexEmitter) -> None:
        """Emit a whole square."""
        corner, columns, results = self._corner(index, None)
        made = [self._made(row, columns, corner, None) for row in range(self.lanes)]
        values = [[emit(entry.element) for entry in self.stage.stores] for emit in made]
        if self.goes_past is None:
            self._store(values, results, index, past=False)
            return
        for past, region in branches(self.goes_past, index):
            with region as inside:
                self._store(values, results, inside, past=past)

    def _store(
        self, rows: Sequence[Sequence[ir.Value]], results: Sequence[ir.Value], index: IndexEmitter, *, past: bool
    ) -> None:
        for number, values in enumerate(rows):
            for entry, value, view in zip(self.stage.stores, values, results, strict=True):
                places = [index(number), index(0)]
                if past:
                    store_past(value, view, places, self.lanes * entry.root.dtype.itemsize)
                else:
                    vector.StoreOp(value, view, places)

    def _part(self, index: IndexEmitter, rows: Dim, points: Dim) -> None:
        """Emit a square of which only the first `rows` rows and the first `points` points of each exist."""
        corner, columns, results = self._corner(index, (points, rows))
        for row in range(self.lanes):
            with where(arith.cmpi(arith.CmpIPredicate.sgt, index(rows), index(row)), corner) as inside:
                emit = self._made(row, columns, inside, points)
                for entry, view in zip(self.stage.stores, results, strict=True):
                    emit.store(entry.root.dtype, emit(entry.element), view, [row, 0])

    def _corner(
        self, index: IndexEmitter, points: tuple[Dim, Dim] | None
    ) -> tuple[IndexEmitter, Sequence[Sequence[ir.Value]], Sequence[ir.Value]]:
        """The indices of the square's corner, the columns of each read, and the squares of the results. Only the first
        `points` of the last loop, and of the one across, exist (None: all).
        """
        line = index(expr.add(symbol(LINE), symbol(PART)))
        corner = index.inside({self.across.name: index(symbol(SQUARE)), self.last.name: line})
        address = self.stage.domain.address
        results = [self._view(entry.operand, address, self.across, corner) for entry in self.stage.stores]
        return corner, [self._columns(load, corner, points) for load in self.reads], results

    def _view(self, operand: int, address: Dim, rows: Loop, corner: IndexEmitter) -> ir.Value:
        """The square of an operand at a corner: rows along a loop, of contiguous elements."""
        form = linear_form(address, [rows.name])
        assert form is not None, "the strategy has looked"
        return strided_view(self.memory.bases[operand], address, (self.lanes,) * 2, (form[1][0], 1), corner)

    def _columns(self, load: Load, corner: IndexEmitter, points: tuple[Dim, Dim] | None) -> Sequence[ir.Value]:
        """The vectors along the last loop, by index of the loop across."""
        kind = ir.VectorType.get([self.lanes], stored_type(load.dtype))
        view = self._view(load.operand, load.address, self.last, corner)
        if points is None:
            rows = [vector.LoadOp(kind, view, [corner(lane), corner(0)]).result for lane in range(self.lanes)]
            return transposed(rows)
        flags = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
        mask = vector.CreateMaskOp(flags, [corner(points[1])]).result
        nothing = vector.BroadcastOp(kind, zero(load.dtype)).result
        # Columns that do not exist repeat the last one.
        places = [corner(expr.minimum(lane, expr.sub(points[0], 1))) for lane in range(self.lanes)]
        return transposed(
            [vector.MaskedLoadOp(kind, view, [place, corner(0)], mask, nothing).result for place in places]
        )

    def _made(
        self, row: int, columns: Sequence[Sequence[ir.Value]], corner: IndexEmitter, points: Dim | None
    ) -> VectorEmitter:
        """The vectors of a row of the square at `corner`."""
        at = {self.across.name: corner(expr.add(symbol(self.across.name), row))} if row else {}
        loaded = {id(load): found[row] for load, found in zip(self.reads, columns, strict=True)}
        along = (self.last.name, self.lanes)
        # Another emitter, since an inner one must not rebind a name.
        index = IndexEmitter(corner.space, {**corner.names, **at})
        register = self.lanes * self.reads[0].dtype.itemsize
        emit = VectorEmitter(self.body.nodes, self.memory, self.traits, along, points, index, register, loaded)
        for element in self.stage.elements:
            emit(element)
        return emit

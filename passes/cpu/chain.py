"""The strategy for two chained products with row stages in between, such as attention: one block of rows at a time.

The rows of a block, with all their columns, stay in a cache, so attention needs no memory for its scores. Rows are
whole, so the stages between the products are emitted like those of any row kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dialect.mlir import arith, ir
from passes.emit.emission import is_float_division
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, register
from passes.emit.regions import loop
from passes.emit.row_facts import RowFacts, facts_of
from passes.emit.stage_emission import StageEmitter
from passes.emit.sum_emission import emit_sum
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, Stage, inner_loops
from passes.loops.collapse import collapse
from passes.loops.contraction import Contraction, match_contraction
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import linear_form
from passes.loops.scalar_dag import Apply
from passes.origins import at_stage
from passes.scalar.registers import stored_type
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.nests import Nest, axes_of
from passes.schedule.record import kernel_item, nested, on_processors, placed
from passes.schedule.sum_blocks import TOTAL, sums_of, totals_of
from passes.schedule.tiling import locals_of, row_size, row_start
from passes.schedule.work import moved_bytes
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.schedule import KernelItem

from .block_maps import Block, emit_maps, positions
from .block_product import BlockProduct
from .blocking import Blocking, balanced, choose_blocking, recorded_blocking, tiles_of_blocking
from .cost import nest_cycles, product_cycles
from .factors import Factors, are_addressable, factors_of, product_scratch
from .frame import Frame
from .machine import Machine
from .packing import Form, InRows, Source

NAME = "chain"
BLOCK_BYTES = 256 * 1024
"""Bytes of the rows of a block as the first product leaves them."""
MAX_SPARSE = 1 << 13
"""Largest width for which rows of scores are as far apart as the widest ones are."""
MIN_TILES, MAX_TILES = 4, 16
"""Register tiles of rows in a block; the right operands are packed for each block."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The products are stages 0 and `last`. The first stores operand `scores`; the left of the second is operand
    `weights`.
    """

    body: KernelBody
    first: Contraction
    second: Contraction
    last: int
    scores: int
    weights: int

    @property
    def between(self) -> dict[int, Stage]:
        """The stages between the products, by number."""
        return {number: self.body.stages[number] for number in range(1, self.last)}

    @property
    def width(self) -> Dim:
        """Elements of a row between the products."""
        return extent_of(self.first.columns)

    @property
    def stored(self) -> set[int]:
        """The operands that the stages between the products store."""
        return {entry.operand for stage in self.between.values() for entry in stage.stores}

    @property
    def locals(self) -> list[int]:
        """The operands of a single row between the products."""
        return [number for number in locals_of(self.body) if number in self.stored - {self.weights}]


def find(body: KernelBody) -> Problem | None:
    """Match two contractions with the same batch and rows, stages over a row between them, and maps behind."""
    reductions = [number for number, stage in enumerate(body.stages) if stage.combine is not None]
    if len(reductions) < 2 or reductions[0] != 0 or not body.rows:
        return None
    body = collapse(body)
    last, rows = reductions[-1], body.rows
    first, second = (_contraction(body, body.stages[number]) for number in (0, last))
    if first is None or second is None or first.dtype is not second.dtype or len(first.batch) != len(second.batch):
        return None
    scores, weights = body.stages[0].stores[0].operand, second.left.load.operand
    problem = Problem(body, first, second, last, scores, weights)
    are_rows = all((*parts.batch, *parts.rows) == rows for parts in (first, second))
    return problem if are_rows and _passes_rows_on(problem) and _maps_follow(problem) else None


def _contraction(body: KernelBody, stage: Stage) -> Contraction | None:
    """The contraction of a stage, if its columns are those of a row and its products are not rounded."""
    parts = match_contraction(stage.domain, stage.combine, stage.elements[0], body.nodes, body.space)
    if parts is None or parts.rounding is not None:
        return None
    is_addressed = are_addressable(parts, body.space)
    return parts if is_addressed and stage.domain.parallel == (*parts.batch, *parts.rows, *parts.columns) else None


def _passes_rows_on(problem: Problem) -> bool:
    """Whether the left operand of the second product is exactly the row that the stages before it computed."""
    body, left, depth = problem.body, problem.second.left, problem.second.depth
    if not (body.is_local(problem.scores) and body.is_local(problem.weights)) or left.load.conditions:
        return False
    if left.load.dtype is not problem.second.dtype or problem.weights not in problem.stored:
        return False
    row = expr.substitute(left.load.address, {loop.name: 0 for loop in depth})
    form = linear_form(left.load.address, [loop.name for loop in depth])
    is_row = row == row_start(body, problem.weights) and form is not None and form[1] == _row_strides(depth)
    return is_row and row_size(body, problem.weights) == extent_of(depth) == problem.width


def _maps_follow(problem: Problem) -> bool:
    """Whether the stages behind the second product are maps of its points that read no other local operand."""
    body, (made,) = problem.body, problem.body.stages[problem.last].stores
    maps = body.stages[problem.last + 1 :]
    read = [(stage, load) for stage in maps for load in loads(stage.elements, body.nodes)]
    at_hand = all(load.address == stage.domain.address for stage, load in read if load.operand == made.operand)
    others = {load.operand for _, load in read} - {made.operand} | {problem.second.right.load.operand}
    columns = extent_of(problem.second.columns)
    are_maps = all(stage.combine is None and extent_of(inner_loops(body, stage)) == columns for stage in maps)
    return are_maps and at_hand and len(maps) < 2 and not any(map(body.is_local, others))


def _row_strides(loops: tuple[Loop, ...]) -> tuple[Dim, ...]:
    return tuple(extent_of(loops[number + 1 :]) for number in range(len(loops)))


def candidates(problem: Problem, machine: Machine) -> Iterator[Choice]:
    """The one candidate: blocks of as many rows as keep their scores in a cache."""
    body, first, second = problem.body, problem.first, problem.second
    blockings = _blockings(problem, machine)
    tiles = tiles_of_blocking(first, blockings[0]) | tiles_of_blocking(second, blockings[1])
    lanes = blockings[0].lanes
    nests = [
        nested((*first.depth, *first.columns), width=lanes),
        *(axes_of(body, Nest(stage, inner_loops(body, stage)), lanes) for stage in problem.between.values()),
        nested((*second.depth, *second.columns), width=lanes),
    ]
    groups = expr.mul(*_counts(problem, blockings[0].block_rows))
    item = kernel_item(body.function.name, placed(body.rows, nests, tiles), on_processors(groups))

    def cost(at: Evaluate) -> Cost:
        products = zip(_factors(problem, blockings[0]), blockings, strict=True)
        cycles = sum(product_cycles(factors, blocking, machine, at) for factors, blocking in products)
        others = (stage for number, stage in enumerate(body.stages) if number not in (0, problem.last))
        cycles += sum(nest_cycles(body, Nest(stage, inner_loops(body, stage)), machine, at) for stage in others)
        return Cost(cycles, moved_bytes(body, at))

    yield Choice(NAME, item, tuple(_scratch(problem, blockings)), cost)


def _blockings(problem: Problem, machine: Machine) -> tuple[Blocking, Blocking]:
    """The blockings of both products, with the same rows."""
    products = (problem.first, problem.second)
    blockings = [choose_blocking(parts, machine.vectors, again=None) for parts in products]
    tile, itemsize = blockings[0].tile_rows, problem.first.dtype.itemsize
    most = BLOCK_BYTES // itemsize // max(problem.body.space.largest(problem.width), 1) // tile
    limit = min(max(most, MIN_TILES), MAX_TILES) * tile
    rows = balanced(extent_of(problem.first.rows), tile, limit)
    first, second = (replace(blocking, block_rows=rows) for blocking in blockings)
    return first, second


def _counts(problem: Problem, block_rows: int) -> tuple[Dim, Dim]:
    """The number of work-groups along batch and rows."""
    return extent_of(problem.first.batch), expr.ceildiv(extent_of(problem.first.rows), block_rows)


def _stride(problem: Problem, blocking: Blocking) -> Dim:
    """Elements from a row of scores to the next: whole column tiles, plus a vector so that the rows of a tile fall into
    different cache sets.
    """
    largest = problem.body.space.largest(problem.width)
    width = problem.width if largest > MAX_SPARSE else largest
    return expr.add(expr.mul(expr.ceildiv(width, blocking.tile_columns), blocking.tile_columns), blocking.lanes)


def _of_rows(problem: Problem, blocking: Blocking, rows: Dim) -> Dim:
    """Elements of `rows` rows of scores, without the padding behind the last one."""
    return expr.sub(expr.mul(rows, _stride(problem, blocking)), blocking.lanes)


def _factors(problem: Problem, blocking: Blocking) -> tuple[Factors, Factors]:
    """The operands of both products. The left of the second is in a block that starts at the work-group's first row.

    It is read in place if its row stride is constant: addresses then need no registers.
    """
    second, stages = problem.second, problem.body.stages
    one = factors_of(problem.first, [loop.name for loop in stages[0].domain.loops], blocking.lanes)
    other = factors_of(second, [loop.name for loop in stages[problem.last].domain.loops], blocking.lanes)
    assert one is not None, "nothing is in panels"
    assert other is not None, "nothing is in panels"
    stride = _stride(problem, blocking)
    if isinstance(stride, int):
        return one, replace(other, left=InRows(problem.weights, 0, stride))
    form = Form(expr.neg(expr.mul(symbol("first_row"), stride)), (stride,), _row_strides(second.depth))
    rows = Loop("chained_row", extent_of(second.rows))
    return one, replace(other, left=Source(second.dtype, problem.weights, (rows,), second.depth, form, ()))


def _scratch(problem: Problem, blockings: tuple[Blocking, Blocking]) -> list[Scratch]:
    """Scratch buffers: the rows of a block before and after the stages between the products, the result of the second
    product, the locals of a row, the totals of its long sums, and those of the products.
    """
    body, (one, other), dtype = problem.body, blockings, problem.first.dtype
    rows = _of_rows(problem, one, one.block_rows)
    scratch = [Scratch(dtype, rows), Scratch(dtype, rows), Scratch(dtype, other.block_rows * other.block_columns)]
    sizes = [(body.operands[number].dtype, row_size(body, number)) for number in problem.locals]
    scratch += [Scratch(kind, size) for kind, size in sizes if size != 1]
    scratch += [
        Scratch(TOTAL, totals_of(body, blocks)) for blocks in sums_of(body, problem.between).values() if blocks.columns
    ]
    for factors, blocking in zip(_factors(problem, one), blockings, strict=True):
        scratch += product_scratch(factors, blocking)
    return scratch


def realise(problem: Problem, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame; its buffers are the operands that leave the kernel, then scratch."""
    blockings = recorded_blocking(problem.first, item), recorded_blocking(problem.second, item)
    _Emission(problem, blockings, frame).groups()


def _facts(problem: Problem) -> RowFacts:
    """The facts of the rows between the products."""
    facts = facts_of(problem.body)
    stored = (store for stage in problem.between.values() for store in stage.stores)
    (factor,) = (store.element for store in stored if store.operand == problem.weights)
    is_share = isinstance(factor, Apply) and is_float_division(factor) and facts.is_share(factor)
    return replace(facts, drops_denormals=is_share)


class _Emission:
    def __init__(self, problem: Problem, blockings: tuple[Blocking, Blocking], frame: Frame) -> None:
        self.problem, self.blockings, self.frame = problem, blockings, frame
        body = problem.body
        self.bases = dict(enumerate(frame.buffers[: body.local_from]))
        scratch: Iterator[ir.Value] = iter(frame.buffers[body.local_from :])
        self.bases |= {problem.scores: next(scratch), problem.weights: next(scratch)}
        self.result = next(scratch)
        for number in problem.locals:
            is_one = row_size(body, number) == 1
            kind = stored_type(body.operands[number].dtype)
            self.bases[number] = register(frame.entry, kind) if is_one else next(scratch)
        self.sums = sums_of(body, problem.between)
        self.totals = {
            number: next(scratch) if blocks.columns else register(frame.entry, stored_type(TOTAL))
            for number, blocks in self.sums.items()
        }
        factors = _factors(problem, blockings[0])
        self.first, self.second = (
            BlockProduct(each, blocking, self.bases, scratch, body.space, frame)
            for each, blocking in zip(factors, blockings, strict=True)
        )

    def groups(self) -> None:
        problem, frame, space = self.problem, self.frame, self.problem.body.space
        block_rows, rows = self.blockings[0].block_rows, extent_of(self.problem.first.rows)
        counts = _counts(problem, block_rows)
        index = IndexEmitter(space, frame.symbols)
        # With an empty batch one work-group is launched nevertheless.
        last = arith.MinSIOp(frame.last, index(expr.mul(*counts))).result
        with loop("group", frame.first, last, 1, index) as here:
            batch, block = space.unflatten(space.add("group", expr.mul(*counts)), counts)
            names = {name: here(at) for name, at in positions(problem.body, problem.first.batch, batch).items()}
            first_row = expr.mul(block, block_rows)
            names["first_row"] = here(first_row)
            names["rows"] = here(expr.minimum(block_rows, expr.sub(rows, first_row)))
            space.bound("rows", 1, block_rows)
            space.add("first_row", rows)
            self._group(here.inside(names))

    def _group(self, index: IndexEmitter) -> None:
        problem, (one, other) = self.problem, self.blockings
        stride, scores = _stride(problem, one), self.bases[problem.scores]
        nodes, stages = problem.body.nodes, problem.body.stages
        with at_stage(nodes, stages[0]):
            self.first.clear(scores, _of_rows(problem, one, self.first.padded_rows), index)
            for here in self._columns(problem.first, one, index):
                self.first.add(scores, symbol("first_column"), stride, here)
        self._rows(stride, index)
        width = other.block_columns
        for here in self._columns(problem.second, other, index):
            with at_stage(nodes, stages[problem.last]):
                self.second.clear(self.result, expr.mul(self.second.padded_rows, width), here)
                self.second.add(self.result, 0, width, here)
            block = Block(self.result, width)
            emit_maps(problem.body, problem.last, problem.second, block, self.bases, self.frame, here)

    def _columns(self, parts: Contraction, blocking: Blocking, index: IndexEmitter) -> Iterator[IndexEmitter]:
        """Loop over the blocks of a product's columns; the caller emits the loop body while it iterates."""
        columns, space = extent_of(parts.columns), index.space
        with loop("first_column", 0, columns, blocking.block_columns, index) as here:
            space.add("first_column", columns)
            space.bound("columns", 1, blocking.block_columns)
            count = expr.minimum(blocking.block_columns, expr.sub(columns, symbol("first_column")))
            yield here.inside({"columns": here(count)})

    def _rows(self, stride: Dim, index: IndexEmitter) -> None:
        """Emit the stages between the products, row by row."""
        problem, body = self.problem, self.problem.body
        with loop("row", 0, symbol("rows"), 1, index) as here:
            here.space.add("row", symbol("rows"))
            places = positions(body, problem.first.rows, expr.add(symbol("first_row"), symbol("row")))
            here = here.inside({name: here(place) for name, place in places.items()})
            in_block = expr.mul(symbol("row"), stride)
            starts = {number: row_start(body, number) for number in (problem.scores, *problem.locals, problem.weights)}
            starts |= {each: expr.sub(starts[each], in_block) for each in (problem.scores, problem.weights)}
            memory, traits = Memory(self.bases, starts, self.frame.entry), self.frame.machine.traits
            emit = StageEmitter(body.nodes, memory, traits, facts=_facts(problem))
            for number, stage in problem.between.items():
                if number in self.sums:
                    emit_sum(emit, self.sums[number], self.totals[number], here)
                else:
                    emit(stage, inner_loops(body, stage), here)

"""The strategy for contractions: pack blocks, multiply in register tiles, finish each block while it is in cache.

A kernel is one contraction and the maps behind it that read its result element by element (bias, activation, residual).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dialect.mlir import arith
from passes.emit.index_emission import IndexEmitter
from passes.emit.regions import loop
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, Stage
from passes.loops.contraction import Contraction, contraction_of, match_contraction
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import linear_form
from passes.origins import at_stage
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate, at_typical
from passes.schedule.nests import Nest
from passes.schedule.panels import Tiling, tiling_of
from passes.schedule.record import kernel_item, nested, on_processors, placed
from passes.schedule.work import moved_bytes
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.schedule import KernelItem

from .block_maps import Block, emit_maps
from .block_product import BlockProduct
from .blocking import (
    BYTE_TILE_GAIN,
    NEAR,
    PACK,
    READ,
    VECTORS_PER_TILE,
    Blocking,
    blockings,
    group_counts,
    in_byte_tiles,
    recorded_blocking,
    tiles_of_blocking,
    whole_tiles,
)
from .cost import nest_cycles, product_cycles
from .factors import Factors, are_addressable, factors_of, left_in_place, product_scratch, run_in_memory
from .frame import Frame
from .machine import QUAD, Machine
from .packing import InPlace, Source, in_place

NAME = "contraction"
RUNS = (8, 16)
"""Columns of a run, for results in blocks of channels: column blocks are multiples of these."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction kernel."""

    body: KernelBody
    parts: Contraction

    def factors(self, blocking: Blocking, machine: Machine) -> Factors:
        """The operands in the layouts that this blocking reads."""
        packed = self._packed(blocking.lanes, machine)
        return replace(packed, steps=QUAD) if blocking.has_byte_tiles else left_in_place(packed, blocking)

    def in_vectors(self, machine: Machine) -> Factors:
        """The operands as the widest vectors of the machine read them."""
        return self._packed(machine.vectors.lanes(self.parts.dtype), machine)

    def again(self, machine: Machine) -> tuple[float, float]:
        """Cycles to read an element of the left and of the right operand again for another block."""
        factors = self.in_vectors(machine)
        left, right = (PACK if isinstance(each, Source) else READ for each in (factors.left, factors.right))
        is_near = isinstance(factors.left, Source) and in_place(factors.left, self.parts.dtype, (1, 1), (0, 1))
        return NEAR if is_near else left, right

    def _packed(self, lanes: int, machine: Machine) -> Factors:
        names = [loop.name for loop in self.body.stages[0].domain.loops]
        factors = factors_of(self.parts, names, lanes, together=machine.vectors.together)
        assert factors is not None, "operands in panels of other loops are not found"
        return factors


def find(body: KernelBody) -> Problem | None:
    """Match a contraction followed only by maps over its parallel loops."""
    found = contraction_of(body)
    if found is None:
        return None
    body, stage = found[0], found[0].stages[0]
    parts = _storable(found[1], stage)
    if not parts.columns or not are_addressable(parts, body.space):
        return None
    is_readable = factors_of(parts, [loop.name for loop in stage.domain.loops], 1) is not None
    return Problem(body, parts) if is_readable else None


def _storable(parts: Contraction, stage: Stage) -> Contraction:
    """Move outer columns to the batch until the result is linear in the flattened columns, or in runs of them."""
    batch, columns, run = list(parts.batch), list(parts.columns), 0
    while columns and not _are_linear(columns, stage):
        inner = columns[-1].extent
        if isinstance(inner, int) and inner in RUNS and len(columns) > 1 and _are_linear(columns[:-1], stage):
            run = inner
            break
        batch.append(columns.pop(0))
    return replace(parts, batch=tuple(batch), columns=tuple(columns), run=run)


def _are_linear(loops: Sequence[Loop], stage: Stage) -> bool:
    """Whether the stage stores with one constant stride along the flattened loops."""
    form = linear_form(stage.domain.address, [loop.name for loop in loops])
    assert form is not None, "a stage stores at the row-major address of its own loops"
    pairs = zip(form[1], form[1][1:], loops[1:], strict=False)
    return all(outer == expr.mul(inner, loop.extent) for outer, inner, loop in pairs)


def candidates(problem: Problem, machine: Machine) -> Iterator[Choice]:
    """One candidate per blocking for the registers and caches of the machine."""
    is_stored = _result(problem, machine) is not None
    for blocking in _blockings(problem, machine, is_stored=is_stored):
        yield _choice(problem, blocking, machine, is_stored=is_stored and not blocking.has_byte_tiles)


def _blockings(problem: Problem, machine: Machine, *, is_stored: bool) -> Iterator[Blocking]:
    """Blockings that pack the left operand, then those that read it in place, and that of tiles of bytes.

    `is_stored` means that vectors are stored directly to the result; else blocks stay in the cache for the maps, as
    those of tiles of bytes do, whose stores have no masks.
    """
    parts, unit, (left, right) = problem.parts, machine.vectors, problem.again(machine)
    factors = problem.in_vectors(machine)
    # Packing costs as much, and the products of several steps less.
    again = left * factors.steps, right * factors.steps
    known = list(blockings(parts, unit, again=again, is_stored=is_stored, steps=factors.steps))
    tall = whole_tiles(parts, unit, again=again, is_stored=is_stored, steps=factors.steps)
    others = (each for each in tall if each not in known)
    yield from known
    yield from (each for each in others if isinstance(problem.factors(each, machine).left, InPlace))
    if unit.has_tiles and factors.are_bytes:
        yield in_byte_tiles(parts, unit, again=(left * BYTE_TILE_GAIN, right * BYTE_TILE_GAIN))


def _choice(problem: Problem, blocking: Blocking, machine: Machine, *, is_stored: bool) -> Choice:
    body, parts, factors = problem.body, problem.parts, problem.factors(blocking, machine)
    groups = expr.mul(*group_counts(parts, blocking))
    tiles = tiles_of_blocking(parts, blocking)
    outer = (*parts.batch, *parts.rows)
    axes = placed(outer, [nested((*parts.depth, *parts.columns), width=blocking.lanes)], tiles)
    item = kernel_item(body.function.name, axes, on_processors(groups))
    block = Scratch(parts.dtype, blocking.block_rows * blocking.block_columns)
    result = () if is_stored else (block,)

    def cost(at: Evaluate) -> Cost:
        maps = sum(nest_cycles(body, Nest(stage, parts.columns), machine, at) for stage in body.stages[1:])
        return Cost(product_cycles(factors, blocking, machine, at) + maps, moved_bytes(body, at))

    return Choice(NAME, item, (*result, *product_scratch(factors, blocking)), cost)


class Result(NamedTuple):
    """The block of a work-group in the result: the operand, its first element, and the elements from a row to the next
    or, if the rows of a run of columns follow each other, from a run to the next.
    """

    operand: int
    first: Dim
    stride: Dim


def _result(problem: Problem, machine: Machine) -> Result | None:
    """The result that tiles are stored to directly.

    None if maps follow, if the rows of the result have no common stride, if the depth may be empty, or if the machine
    has no masked stores.
    """
    body, parts = problem.body, problem.parts
    (stage, *maps), rows = body.stages, parts.rows
    if maps or len(stage.stores) != 1 or not machine.vectors.masked_lanes or not _are_linear(rows, stage):
        return None
    (store,) = stage.stores
    if body.operands[store.operand].dtype is not parts.dtype or not body.space.is_positive(extent_of(parts.depth)):
        return None
    run = run_in_memory(parts, machine.vectors.lanes(parts.dtype))
    *outer, column = parts.columns[:-1] if run else parts.columns
    loops = (*parts.batch, rows[-1], column, parts.columns[-1])
    form = linear_form(stage.domain.address, [loop.name for loop in (*loops, *rows[:-1], *outer)])
    assert form is not None, "a stage stores at the row-major address of its own loops"
    base, (*of_batch, of_row, of_column, step) = form[0], form[1][: len(loops)]
    if step != 1 or parts.run != run or (run and of_row != run):
        return None
    starts = [expr.mul(symbol(loop.name), each) for loop, each in zip(parts.batch, of_batch, strict=True)]
    starts.append(expr.mul(symbol("first_row"), of_row))
    if run:
        starts.append(expr.mul(expr.floordiv(symbol("first_column"), run), of_column))
        return Result(store.operand, expr.add(base, *starts), of_column)
    return Result(store.operand, expr.add(base, *starts, symbol("first_column")), of_row)


def tilings(body: KernelBody, problem: Problem, machine: Machine) -> Sequence[Tiling]:
    """The packed layouts of parameters: panels of register tiles over the whole depth, for the micro-kernel."""
    stage = body.stages[0]
    parts = match_contraction(stage.domain, stage.combine, stage.elements[0], body.nodes, body.space)
    if parts is None:
        return ()
    at = at_typical(body.function.symbols, loops=body.extents)
    blocking = min(
        _blockings(problem, machine, is_stored=_result(problem, machine) is not None),
        key=lambda blocking: product_cycles(problem.factors(blocking, machine), blocking, machine, at),
    )
    read = [load.operand for each in body.stages for load in loads(each.elements, body.nodes)]
    found: list[Tiling] = []
    # A wide tile reads two narrow panels, so that kernels with either tile width share a packed parameter.
    panel = VECTORS_PER_TILE * blocking.lanes
    for access, tiled, tile in (
        (parts.left, parts.rows, blocking.tile_rows),
        (parts.right, parts.columns, problem.parts.run or panel),
    ):
        load = access.load
        # A parameter that is widened while packing takes less memory unpacked.
        is_alone = read.count(load.operand) == 1 and load.operand < len(body.function.arguments)
        if is_alone and load.dtype is parts.dtype:
            tiling = tiling_of(load, body.operands[load.operand], tile, tiled, (*parts.batch, *parts.depth))
            found += [] if tiling is None else [tiling]
    return found


def realise(problem: Problem, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame; its buffers are the operands that leave the kernel, then scratch."""
    _Emission(problem, recorded_blocking(problem.parts, item), frame).groups()


class _Emission:
    def __init__(self, problem: Problem, blocking: Blocking, frame: Frame) -> None:
        self.problem, self.blocking, self.frame = problem, blocking, frame
        shared = problem.body.local_from
        self.bases = dict(enumerate(frame.buffers[:shared]))
        self.result = None if blocking.has_byte_tiles else _result(problem, frame.machine)
        scratch = iter(frame.buffers[shared:])
        self.block = self.bases[self.result.operand] if self.result else next(scratch)
        factors, space = problem.factors(blocking, frame.machine), problem.body.space
        self.product = BlockProduct(
            factors, blocking, self.bases, scratch, space, frame, is_exact=self.result is not None
        )

    def groups(self) -> None:
        space, parts, blocking = self.problem.body.space, self.problem.parts, self.blocking
        counts = group_counts(parts, blocking)
        index = IndexEmitter(space, self.frame.symbols)
        groups, last = expr.mul(*counts), self.frame.last
        if not expr.is_nonnegative(expr.sub(groups, 1), space.symbols):
            # With an empty batch one work-group is launched nevertheless.
            last = arith.MinSIOp(last, index(groups)).result
        with loop("group", self.frame.first, last, 1, index) as here:
            group = space.add("group", groups)
            batch, row_block, column_block = space.unflatten(group, counts)
            positions = space.unflatten(batch, [loop.extent for loop in parts.batch])
            names = {loop.name: here(place) for loop, place in zip(parts.batch, positions, strict=False)}
            first_row, first_column = (
                expr.mul(row_block, blocking.block_rows),
                expr.mul(column_block, blocking.block_columns),
            )
            rows = expr.minimum(blocking.block_rows, expr.sub(extent_of(parts.rows), first_row))
            columns = expr.minimum(blocking.block_columns, expr.sub(extent_of(parts.columns), first_column))
            block = (first_row, first_column, rows, columns)
            names |= {name: here(dim) for name, dim in zip(BLOCK, block, strict=True)}
            space.bound("rows", 1, blocking.block_rows)
            space.bound("columns", 1, blocking.block_columns)
            space.add("first_row", extent_of(parts.rows))
            space.add("first_column", extent_of(parts.columns))
            self._group(here.inside(names))

    def _group(self, index: IndexEmitter) -> None:
        body, blocking, run = self.problem.body, self.blocking, self.product.run
        stride = blocking.block_rows * run if run else blocking.block_columns
        with at_stage(body.nodes, body.stages[0]):
            if self.result:
                self.product.add(self.block, self.result.first, self.result.stride, index)
                return
            size = expr.mul(blocking.block_rows if run else self.product.padded_rows, blocking.block_columns)
            self.product.clear(self.block, size, index)
            self.product.add(self.block, 0, stride, index)
        emit_maps(body, 0, self.problem.parts, Block(self.block, stride, run), self.bases, self.frame, index)


BLOCK = ("first_row", "first_column", "rows", "columns")
"""Index names of the first row and column of a work-group's block, and of its size."""

"""The strategy for all kernels but contractions and scatters: rows over work-groups, linalg inside a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dialect.mlir import ir
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import Memory, register
from passes.emit.row_facts import facts_of
from passes.emit.stage_emission import StageEmitter
from passes.emit.sum_emission import emit_sum, row_sums
from passes.emit.sweep_emission import emit_result, emit_sweep, registers_of
from passes.loops.body import KernelBody, Stage
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import Index
from passes.loops.substitution import over
from passes.scalar.registers import stored_type
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.nests import Nest, axes_of, nests_of, recorded_nests
from passes.schedule.record import at_once, kernel_item, on_processors, placed
from passes.schedule.rows_at_once import rows_at_once
from passes.schedule.sum_blocks import TOTAL, sums_of, totals_of
from passes.schedule.sweeps import Sweep, needed_share, sweeps_of
from passes.schedule.tiling import ROW as ROW_LOOP
from passes.schedule.tiling import (
    WHOLE,
    Rows,
    block_name,
    inner_loops,
    locals_of,
    row_size,
    row_start,
    rows_candidates,
    rows_per_group,
    with_rows,
)
from passes.schedule.work import moved_bytes
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from .cost import nest_cycles
from .frame import Frame
from .machine import Machine
from .past_cache import fence
from .row_ahead import emit_beside, streams_beside
from .rows import LINE, for_each_row, for_rows_at_once, span_of
from .staged_rows import POINTS, Staging, may_be_staged, staged_rows

NAME = "loops"


def candidates(shared: KernelBody, machine: Machine) -> Iterator[Choice]:
    """One candidate per split into rows, with enough rows per work-group to amortise its start."""
    for rows in _short_rows(shared, machine) or rows_candidates(shared):
        yield _choice(shared, rows, machine)


def _short_rows(shared: KernelBody, machine: Machine) -> Sequence[Rows]:
    """The splits into short rows, if all of these are staged."""
    if not may_be_staged(shared, machine):
        return ()
    found = tuple(rows_candidates(shared, POINTS))
    return found if all(staged_rows(with_rows(shared, rows), machine) for rows in found) else ()


def _choice(shared: KernelBody, rows: Rows, machine: Machine) -> Choice:
    body = with_rows(shared, rows)
    sweeps = sweeps_of(body)
    stages = _beside(body, sweeps)
    sums = sums_of(body, stages)
    nests, lanes = nests_of(body, machine.vectors.masked_lanes), machine.vectors.lanes(DType.FLOAT32)
    # A first stage in a sweep cannot reduce several rows together.
    together = rows_at_once(body) if 0 in stages else 1
    per_group = _in_whole_groups(rows_per_group(body), together, body.space.largest(extent_of(body.rows)))
    groups = expr.ceildiv(extent_of(body.rows), per_group)
    axes = placed(
        body.rows,
        [axes_of(body, nest, lanes) for parts in nests for nest in parts],
        {block_name(loop): (size,) for loop, size in zip(shared.rows, rows, strict=True) if size > 0},
    )
    if together > 1:
        last = len(body.rows) - 1
        axes[last] = replace(axes[last], at_once=together)
    item = kernel_item(body.function.name, axes, on_processors(groups, per_group))
    scratch = [Scratch(body.operands[number].dtype, row_size(body, number)) for number in _scratch_operands(body)]
    scratch += [row.scratch for row in staged_rows(body, machine)]
    scratch += [Scratch(TOTAL, totals_of(body, blocks)) for blocks in sums.values() if blocks.columns]

    looked_for = frozenset[int]().union(*(sweep.looked_for for sweep in sweeps))

    def cost(at: Evaluate) -> Cost:
        cycles = 0.0
        for number, stage in enumerate(body.stages):
            own = sum(nest_cycles(body, nest, machine, at) for nest in nests[number])
            cycles += own * needed_share(at(extent_of(stage.domain.reduction))) if number in looked_for else own
        return Cost(cycles, moved_bytes(body, at))

    return Choice(NAME, item, tuple(scratch), cost)


def _in_whole_groups(per_group: int, together: int, most: int) -> int:
    """Rows of a work-group, a multiple of `together`, for at most `most` rows in all."""
    return max(min(-(-per_group // together), most // together), 1) * together if together > 1 else per_group


def _rows_of(body: KernelBody, item: KernelItem) -> Rows:
    """The split into rows that the record describes."""
    sizes = dict(zip((axis.name for axis in item.iter.axes), item.iter.tiles, strict=True))
    block = {item.iter.axes[number].name for number in item.iter.mapping.block}
    return tuple(_recorded(loop, block, sizes) for loop in body.rows)


def _recorded(loop: Loop, block: set[str], sizes: Mapping[str, tuple[Dim, ...]]) -> int:
    if loop.name in block:
        return ROW_LOOP
    if block_name(loop) not in block:
        return WHOLE
    (size,) = sizes[block_name(loop)]
    assert isinstance(size, int), "pieces have a constant size"
    return size


def realise(shared: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame; its buffers are the body's operands, except those that live in registers."""
    rows = _rows_of(shared, item)
    body = with_rows(shared, rows)
    nests = recorded_nests(body, item)
    in_registers = [number for number in locals_of(body) if row_size(body, number) == 1]
    given = iter(frame.buffers)
    bases = {
        number: register(frame.entry, stored_type(value.dtype)) if number in in_registers else next(given)
        for number, value in enumerate(body.operands)
    }
    sweeps = sweeps_of(body)
    for sweep in sweeps:
        bases |= registers_of(sweep, frame.entry)
    memory = Memory(bases, {number: row_start(body, number) for number in locals_of(body)}, frame.entry)
    emit = StageEmitter(body.nodes, memory, frame.machine.traits, facts_of(body))
    past = staged_rows(body, frame.machine)
    staging = Staging(frame, past, emit, body.space, given) if past else None
    if staging is None and _is_one_loop(body, nests, rows):
        _emit_as_one_loop(emit, shared, body, rows[0], frame, item.context.upcasted)
        return
    sums = sums_of(body, _beside(body, sweeps))
    together = at_once(item)
    totals = {
        number: next(given) if blocks.columns else register(frame.entry, stored_type(TOTAL))
        for number, blocks in sums.items()
        if number > 0 or together == 1
    }

    ahead = streams_beside(body, nests, {row.operand for row in past})
    first = {sweep.first: sweep for sweep in sweeps}
    results = {number: result for sweep in sweeps for number, result in sweep.results.items()}

    def at(positions: Index, index: IndexEmitter) -> IndexEmitter:
        return index.inside({loop.name: index(at) for loop, at in zip(body.rows, positions, strict=True)})

    def emit_stages(here: IndexEmitter, since: int) -> None:
        for number in range(since, len(body.stages)):
            if number in first:
                emit_sweep(emit, first[number], here)
            if number in results:
                emit_result(emit, results[number], here)
            elif number in sums:
                (nest,) = nests[number]
                emit_sum(emit, sums[number], totals[number], here, nest.strip)
            else:
                own, place = emit, here
                if staging is not None and number == len(body.stages) - 1:
                    own, place = staging.emit, staging.at(here)
                if streams := ahead.get(number):
                    emit_beside(own, body, nests[number][0], streams, place)
                else:
                    for nest in nests[number]:
                        own(nest.stage, nest.loops, place, nest.strip)
        if staging is not None:
            staging.copy(here)

    row_totals = (
        [register(frame.entry, stored_type(TOTAL)) for _ in range(together)] if together > 1 and 0 in sums else []
    )
    start = body.stages[0]

    def reduce(positions: Index, rows: Sequence[IndexEmitter]) -> Sequence[ir.Value]:
        here = [at(positions, row) for row in rows]
        if 0 in sums:
            return row_sums(emit, sums[0], row_totals, here)
        return emit.reduced_together(start, inner_loops(body, start), here)

    def finish(positions: Index, row: IndexEmitter, value: ir.Value) -> None:
        here = at(positions, row)
        emit.keep(value, start, here)
        emit_stages(here, 1)

    if together > 1:
        for_rows_at_once(frame, body.space, body.rows, item.context.upcasted, together, reduce, finish)
    else:
        for_each_row(
            frame,
            body.space,
            body.rows,
            item.context.upcasted,
            lambda positions, index: emit_stages(at(positions, index), 0),
        )
    if past:
        fence(frame)


def _is_one_loop(body: KernelBody, nests: Sequence[Sequence[Nest]], rows: Rows) -> bool:
    """Whether the kernel is one map along one loop that is cut into pieces: the pieces of a frame follow each other."""
    is_map = len(body.stages) == 1 and body.stages[0].combine is None and not locals_of(body)
    is_cut = len(rows) == 1 and rows[0] > 0
    return is_map and is_cut and len(nests[0]) == 1 and nests[0][0].strip is None


def _emit_as_one_loop(
    emit: StageEmitter, shared: KernelBody, body: KernelBody, size: int, frame: Frame, per_group: int
) -> None:
    """Emit all pieces of a frame, of `size` points each, as one loop: LLVM takes half as long for it as for a nest."""
    (whole,), space = shared.rows, body.space
    with span_of(frame, space, extent_of(body.rows), per_group) as (span, index):
        first = expr.mul(span.begin, size)
        points = expr.sub(expr.minimum(expr.mul(span.end, size), whole.extent), first)
        place = expr.add(first, space.add(LINE, points))
        line = Loop(LINE, points)
        emit(over(shared, shared.stages[0], (line,), {whole.name: place}), (line,), index)


def _beside(body: KernelBody, sweeps: Sequence[Sweep]) -> dict[int, Stage]:
    """The stages outside all sweeps, by number."""
    swept = {number for sweep in sweeps for number in sweep.results}
    return {number: stage for number, stage in enumerate(body.stages) if number not in swept}


def _scratch_operands(body: KernelBody) -> list[int]:
    """The local operands with more than one element per row: each worker has a buffer for them."""
    return [number for number in locals_of(body) if row_size(body, number) != 1]

"""The strategy for kernels with a reduction or several loop nests: rows over work-groups, lanes inside a row.

Long rows get a work-group each, whose threads are the lanes of the row. If memory is contiguous across rows, or rows
are short, a work-group takes many rows side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from passes.loops.accesses import linear_access, loads
from passes.loops.body import KernelBody, inner_loops
from passes.loops.domain import extent_of
from passes.schedule.choice import Choice, Scratch
from passes.schedule.record import PlacedAxis, constant_extent, kernel_item, on_threads
from passes.schedule.tiling import locals_of, row_size
from tensorkiln import expr
from tensorkiln.architectures import MAX_THREADS_PER_BLOCK, STATIC_SHARED_BYTES
from tensorkiln.schedule import KernelItem, SharedArray

from .cost import rows_cost
from .frame import Frame
from .machine import Machine
from .reduction import Lanes
from .row_emission import RowEmission

NAME = "rows"
THREADS = 256
SHORT_ROW = 16
"""Most points that one thread computes alone."""
POINTS_PER_LANE = 4
LONG_ROW = 8192
FEW_ROWS = 256
"""Below this, work-groups leave much of a GPU idle unless each is as large as possible."""
COLUMN_LANES = 8
SHARED_BUDGET = STATIC_SHARED_BYTES // 2
"""Bytes of shared memory for rows: more would leave room for only one work-group on a multiprocessor."""


def candidates(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    """Rows with as many lanes as stay busy, or with half or twice as many."""
    expected = _lanes(body, machine.device.wave)
    yield _choice(body, expected, machine)
    if expected.rows == 1:
        for lanes in (expected.lanes // 2, expected.lanes * 2):
            if machine.device.wave <= lanes <= MAX_THREADS_PER_BLOCK:
                yield _choice(body, Lanes(1, lanes, machine.device.wave), machine)


def _choice(body: KernelBody, lanes: Lanes, machine: Machine) -> Choice:
    row_count = extent_of(body.rows)
    groups = expr.ceildiv(row_count, lanes.rows)
    axes = [PlacedAxis("row_group", groups, "block")]
    if lanes.rows > 1:
        axes.append(PlacedAxis("row", lanes.rows, "thread"))
    if lanes.lanes > 1:
        axes.append(PlacedAxis("lane", lanes.lanes, "thread"))
    for number, stage in enumerate(body.stages):
        points = body.space.largest(extent_of(inner_loops(body, stage)))
        axes.append(PlacedAxis(f"step_{number}", -(-points // lanes.lanes), "serial", stage.combine is not None))
    shared = exchange_arrays(body, lanes) + [array for _, array in shared_rows(body, lanes)]
    scratch = tuple(
        Scratch(body.operands[number].dtype, expr.product(body.operands[number].shape), is_private=False)
        for number in rows_in_buffers(body, lanes)
    )
    item = kernel_item(body.function.name, axes, on_threads(groups, lanes.threads, machine.runtime), shared)
    return Choice(NAME, item, scratch, partial(rows_cost, body, lanes, machine))


def realise(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    """Emit the rows of one work-group."""
    lanes = Lanes(constant_extent(item, "row"), constant_extent(item, "lane"), frame.machine.device.wave)
    exchanges = exchange_arrays(body, lanes)
    arrays = [number for number, _ in shared_rows(body, lanes)]
    exchange = {array.dtype: base for array, base in zip(exchanges, frame.shared, strict=False)}
    in_shared = dict(zip(arrays, frame.shared[len(exchanges) :], strict=True))
    in_buffers = dict(zip(rows_in_buffers(body, lanes), frame.buffers[body.local_from :], strict=True))
    RowEmission(body, lanes, frame, exchange, in_shared, in_buffers).emit()


def _lanes(body: KernelBody, wave: int) -> Lanes:
    points = max(body.space.largest(extent_of(inner_loops(body, stage))) for stage in body.stages)
    rows = body.space.largest(extent_of(body.rows))
    if rows > 1 and points > SHORT_ROW and _walks_across_rows(body):
        return Lanes(wave, COLUMN_LANES if rows > FEW_ROWS * wave else wave, wave)
    if points <= SHORT_ROW and rows > 1:
        return Lanes(THREADS, 1, wave)
    most = MAX_THREADS_PER_BLOCK if rows < FEW_ROWS and points >= LONG_ROW else THREADS
    lanes = wave
    while lanes < most and lanes * POINTS_PER_LANE < points:
        lanes *= 2
    return Lanes(1, lanes, wave)


def _walks_across_rows(body: KernelBody) -> bool:
    """Whether memory is contiguous from row to row, and not along a row, for all reductions and most reads."""
    if any(stage.domain.parallel != body.rows for stage in body.stages):
        return False
    across = along = 0
    for stage in body.stages:
        names = [loop.name for loop in stage.domain.loops]
        inner = inner_loops(body, stage)
        if not inner:
            continue
        row, last = names.index(body.rows[-1].name), names.index(inner[-1].name)
        for load in loads(stage.elements, body.nodes):
            access = linear_access(load, body.nodes, names)
            if access is not None:
                across += access.strides[row] == 1
                along += access.strides[last] == 1
    return across > along


def exchange_arrays(body: KernelBody, lanes: Lanes) -> list[SharedArray]:
    """The arrays through which lanes exchange partial results: one for every dtype that is reduced.

    Reductions alternate between its two halves: when one half is written, all threads have finished with its last use.
    """
    if not lanes.exchange_elements:
        return []
    uses = Counter(stage.elements[0].dtype for stage in body.stages if stage.combine is not None)
    return [SharedArray(dtype=dtype, elements=min(count, 2) * lanes.exchange_elements) for dtype, count in uses.items()]


def shared_rows(body: KernelBody, lanes: Lanes) -> list[tuple[int, SharedArray]]:
    """The local operands, with many elements per row, that fit in shared memory."""
    found: list[tuple[int, SharedArray]] = []
    left = SHARED_BUDGET
    for number in locals_of(body):
        size = expr.mul(row_size(body, number), lanes.rows)
        array = SharedArray(dtype=body.operands[number].dtype, elements=size)
        most = body.space.largest(size) * array.dtype.itemsize
        if row_size(body, number) != 1 and most <= left:
            left -= most
            found.append((number, array))
    return found


def rows_in_buffers(body: KernelBody, lanes: Lanes) -> list[int]:
    """The local operands that do not fit in shared memory, and take a buffer of their full size."""
    placed = {number for number, _ in shared_rows(body, lanes)}
    return [number for number in locals_of(body) if number not in placed and row_size(body, number) != 1]

"""What kernels cost on a multiprocessor: cycles for its lanes, and the sectors of memory that their accesses touch."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from passes.loops.accesses import linear_access, loads
from passes.loops.body import KernelBody, Stage
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.schedule.choice import bounded
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.tiling import inner_loops
from passes.schedule.work import moved_bytes, operations, selections

from .machine import CACHE_SPEEDUP, Machine
from .reduction import Lanes
from .tiles import Tiles

SHARED_WORDS: Final = 32
"""Of 32 bits, that shared memory gives in a cycle: as many as it has banks."""
SECTOR: Final = 32
"""Bytes of the smallest piece that memory hands out."""
ACCESS: Final = 4
"""A load or store instruction, in additions: a quarter of the lanes can issue one in a cycle."""
BARRIER: Final = 40
"""Cycles of a work-group at a barrier."""


def stage_cycles(body: KernelBody, stage: Stage, points: float, width: int, machine: Machine) -> float:
    """Cycles of so many points of a stage, whose contiguous accesses a thread does `width` at a time."""
    accesses = (len(loads(stage.elements, body.nodes)) + len(stage.stores)) * ACCESS / width
    return points * (operations(body, stage) + selections(body, stage) + accesses) / machine.device.lanes


def points_cost(body: KernelBody, width: int, machine: Machine, at: Evaluate) -> Cost:
    """Maps whose neighbouring threads take neighbouring points."""
    points = at(extent_of(body.rows))
    cycles = sum(stage_cycles(body, stage, points, width, machine) for stage in body.stages)
    scattered = sum(_scattered(body, stage, body.rows, at) for stage in body.stages)
    return Cost(cycles, moved_bytes(body, at) + scattered)


def rows_cost(body: KernelBody, lanes: Lanes, machine: Machine, at: Evaluate) -> Cost:
    """Rows shared by lanes, each as long as its longest lane takes."""
    rows = ceil(at(extent_of(body.rows)) / lanes.rows) * lanes.rows
    cycles, moved = 0.0, float(moved_bytes(body, at))
    for stage in body.stages:
        inner = inner_loops(body, stage)
        points = ceil(at(extent_of(bounded(body, inner))) / lanes.lanes) * lanes.lanes
        cycles += stage_cycles(body, stage, rows * points, 1, machine)
        if stage.combine is not None and lanes.lanes > 1:
            barriers = lanes.lanes.bit_length() if lanes.rows > 1 else 1
            cycles += rows / lanes.rows * barriers * BARRIER
        moved += _scattered(body, stage, inner if lanes.rows == 1 else body.rows, at)
    return Cost(cycles, moved)


def product_cost(body: KernelBody, parts: Contraction, tiles: Tiles, machine: Machine, at: Evaluate) -> Cost:
    """A contraction in tiles, whole ones."""
    batch, rows, columns, depth = (
        at(extent_of(loops)) for loops in (parts.batch, parts.rows, parts.columns, parts.depth)
    )
    results = batch * ceil(rows / tiles.rows) * tiles.rows * ceil(columns / tiles.columns) * tiles.columns
    # A product takes a lane for a cycle, and its factors come from shared memory, so many words in each.
    loaded = (1 / tiles.thread_rows + 1 / tiles.thread_columns) / SHARED_WORDS
    cycles = results * depth * max(1 / machine.device.lanes, loaded)
    cycles += sum(stage_cycles(body, stage, results, 1, machine) for stage in body.stages[1:])
    again = results * depth * (1 / tiles.rows + 1 / tiles.columns) * parts.dtype.itemsize
    return Cost(cycles, moved_bytes(body, at) + again / CACHE_SPEEDUP)


def _scattered(body: KernelBody, stage: Stage, neighbours: Sequence[Loop], at: Evaluate) -> float:
    """Bytes beyond those of the elements: where threads that are neighbours along the last of the loops read apart."""
    names = [loop.name for loop in stage.domain.loops]
    if not neighbours or neighbours[-1].name not in names:
        return 0.0
    along = names.index(neighbours[-1].name)
    found = (linear_access(load, body.nodes, names) for load in loads(stage.elements, body.nodes))
    apart = [access for access in found if access is not None and access.strides[along] not in (0, 1)]
    points = at(extent_of(bounded(body, stage.domain.loops)))
    return points * sum(SECTOR - access.load.dtype.itemsize for access in apart)

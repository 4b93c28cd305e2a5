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

SECTOR: Final = 32
"""Bytes of the smallest piece that memory hands out."""
ACCESS: Final = 4
"""A load or store instruction, in additions: a quarter of the lanes can issue one in a cycle."""
BARRIER: Final = 40
"""Cycles of a work-group at a barrier."""
DIVISION: Final = 8
"""An index divided by a constant, and what is left over, in additions."""
CONDITION: Final = 4
"""A test of an index on which a load depends, in additions."""
GUARDED: Final = 32
"""Additions that a lane waits for a load behind such a test, which does not begin before those of other points end."""
FETCH: Final = 20
"""Additions for an element that goes from memory to a tile of a product: its tests and address, a load, a store."""
STEP: Final = 240
"""Cycles of a work-group for each step along the depth of a product, beside what it multiplies and fetches."""
STEP_WAITS: Final = 750
"""Cycles from the fetch of a tile to its arrival, in a step of a work-group that has its multiprocessor to itself."""


def index_additions(body: KernelBody, stage: Stage, loops: Sequence[Loop]) -> int:
    """Additions for the indices of a point of a stage of which a number says where it is in `loops`."""
    conditions = [len(load.conditions) for load in loads(stage.elements, body.nodes) if load.conditions]
    return DIVISION * max(len(loops) - 1, 0) + CONDITION * sum(conditions) + GUARDED * len(conditions)


def stage_cycles(
    body: KernelBody, stage: Stage, loops: Sequence[Loop], points: float, width: int, machine: Machine
) -> float:
    """Cycles of so many points of a stage, numbered in `loops`, of which a thread does `width` neighbours at a time."""
    accesses = (len(loads(stage.elements, body.nodes)) + len(stage.stores)) * ACCESS
    each = operations(body, stage) + selections(body, stage)
    return points * (each + (accesses + index_additions(body, stage, loops)) / width) / machine.device.lanes


def points_cost(body: KernelBody, width: int, machine: Machine, at: Evaluate) -> Cost:
    """Maps whose neighbouring threads take neighbouring points."""
    points = at(extent_of(body.rows))
    cycles = sum(stage_cycles(body, stage, body.rows, points, width, machine) for stage in body.stages)
    scattered = sum(_scattered(body, stage, body.rows, at) for stage in body.stages)
    return Cost(cycles, moved_bytes(body, at) + scattered)


def rows_cost(body: KernelBody, lanes: Lanes, machine: Machine, at: Evaluate) -> Cost:
    """Rows shared by lanes, each as long as its longest lane takes."""
    rows = ceil(at(extent_of(body.rows)) / lanes.rows) * lanes.rows
    cycles, moved = 0.0, float(moved_bytes(body, at))
    for stage in body.stages:
        inner = inner_loops(body, stage)
        points = ceil(at(extent_of(bounded(body, inner))) / lanes.lanes) * lanes.lanes
        cycles += stage_cycles(body, stage, inner, rows * points, 1, machine)
        if stage.combine is not None and lanes.lanes > 1:
            barriers = lanes.lanes.bit_length() if lanes.rows > 1 else 1
            cycles += rows / lanes.rows * barriers * BARRIER
        moved += _scattered(body, stage, inner if lanes.rows == 1 else body.rows, at)
    return Cost(cycles, moved)


def product_cost(body: KernelBody, parts: Contraction, tiles: Tiles, machine: Machine, at: Evaluate) -> Cost:
    """A contraction in tiles, whole ones.

    What it computes was fitted to products of 512 and 4096 and to the convolutions of ResNet-50 on an H200.
    """
    batch, rows, columns, depth = (
        at(extent_of(loops)) for loops in (parts.batch, parts.rows, parts.columns, parts.depth)
    )
    groups, steps = batch * ceil(rows / tiles.rows) * ceil(columns / tiles.columns), ceil(depth / tiles.depth)
    itemsize, lanes = parts.dtype.itemsize, machine.device.lanes
    # A product takes a lane for a cycle, one of 64 bits two lanes.
    products = tiles.rows * tiles.columns * tiles.depth * max(itemsize / 4, 1) / lanes
    fetched = 0.0
    for access, across, width in ((parts.left, parts.rows, tiles.rows), (parts.right, parts.columns, tiles.columns)):
        additions = DIVISION * (max(len(across) - 1, 0) + len(parts.depth) - 1) + CONDITION * len(
            access.load.conditions
        )
        fetched += tiles.depth * width * (FETCH + additions) / lanes
    cycles = groups * steps * (products + fetched + STEP)
    results = groups * tiles.rows * tiles.columns
    loops = (*parts.rows, *parts.columns)
    cycles += sum(stage_cycles(body, stage, loops, results, 1, machine) for stage in body.stages[1:])
    again = groups * depth * (tiles.rows + tiles.columns) * itemsize
    return Cost(cycles, moved_bytes(body, at) + again / CACHE_SPEEDUP, steps * STEP_WAITS)


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

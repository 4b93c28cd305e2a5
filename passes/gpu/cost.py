"""The cost of kernels on a multiprocessor: cycles of its lanes, and the memory sectors that their accesses touch."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from passes.loops.accesses import linear_access, loads
from passes.loops.body import KernelBody, Stage, inner_loops
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.schedule.choice import points_of
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.work import moved_bytes, operations, selections

from .machine import CACHE_SPEEDUP, Machine
from .reduction import Lanes
from .tiles import Tiles

SECTOR: Final = 32
"""Bytes of the smallest memory transaction."""
ACCESS: Final = 4
"""A load or store instruction, in additions: a quarter of the lanes can issue one per cycle."""
BARRIER: Final = 40
"""Cycles of a work-group at a barrier."""
DIVISION: Final = 8
"""Quotient and remainder of an index by a constant, in additions."""
CONDITION: Final = 4
"""An index test that a load depends on, in additions."""
GUARDED: Final = 32
"""Latency of a load behind such a test, in additions: it cannot overlap with the loads of other points."""
FETCH: Final = 20
"""Cost of an element loaded from memory to a product's tile, in additions: tests, address, load and store."""
STEP: Final = 240
"""Cycles of a work-group per step along the depth of a product, besides its products and loads."""
STEP_WAITS: Final = 750
"""Cycles from the load of a tile to its arrival, for a work-group alone on its multiprocessor."""


def stage_cycles(
    body: KernelBody, stage: Stage, loops: Sequence[Loop], points: float, width: int, machine: Machine
) -> float:
    """Cycles of `points` points of a stage, numbered in `loops`; a thread computes `width` neighbours at a time."""
    found = loads(stage.elements, body.nodes)
    conditions = [len(load.conditions) for load in found if load.conditions]
    index = DIVISION * max(len(loops) - 1, 0) + CONDITION * sum(conditions) + GUARDED * len(conditions)
    accesses = (len(found) + len(stage.stores)) * ACCESS
    each = operations(body, stage) + selections(body, stage)
    return points * (each + (accesses + index) / width) / machine.device.lanes


def points_cost(body: KernelBody, width: int, machine: Machine, at: Evaluate) -> Cost:
    """The cost of maps in which neighbouring threads compute neighbouring points."""
    points = at(extent_of(body.rows))
    cycles = sum(stage_cycles(body, stage, body.rows, points, width, machine) for stage in body.stages)
    scattered = sum(_scattered(body, stage, body.rows, at) for stage in body.stages)
    return Cost(cycles, moved_bytes(body, at) + scattered)


def rows_cost(body: KernelBody, lanes: Lanes, machine: Machine, at: Evaluate) -> Cost:
    """The cost of rows shared by lanes; a row takes as long as its longest lane."""
    rows = ceil(at(extent_of(body.rows)) / lanes.rows) * lanes.rows
    cycles, moved = 0.0, float(moved_bytes(body, at))
    for stage in body.stages:
        inner = inner_loops(body, stage)
        points = ceil(points_of(body, inner, at) / lanes.lanes) * lanes.lanes
        cycles += stage_cycles(body, stage, inner, rows * points, 1, machine)
        if stage.combine is not None and lanes.lanes > 1:
            barriers = lanes.lanes.bit_length() if lanes.rows > 1 else 1
            cycles += rows / lanes.rows * barriers * BARRIER
        moved += _scattered(body, stage, inner if lanes.rows == 1 else body.rows, at)
    return Cost(cycles, moved)


def product_cost(body: KernelBody, parts: Contraction, tiles: Tiles, machine: Machine, at: Evaluate) -> Cost:
    """The cost of a contraction in whole tiles.

    The compute part was fitted to products of 512 and 4096 and to the convolutions of ResNet-50 on an H200.
    """
    batch, rows, columns, depth = (
        at(extent_of(loops)) for loops in (parts.batch, parts.rows, parts.columns, parts.depth)
    )
    groups, steps = batch * ceil(rows / tiles.rows) * ceil(columns / tiles.columns), ceil(depth / tiles.depth)
    itemsize, lanes = parts.dtype.itemsize, machine.device.lanes
    # A 32-bit product takes one lane for a cycle, a 64-bit one two.
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
    """Extra bytes of uncoalesced reads, by threads that are neighbours along the last of the loops."""
    names = [loop.name for loop in stage.domain.loops]
    if not neighbours or neighbours[-1].name not in names:
        return 0.0
    along = names.index(neighbours[-1].name)
    found = (linear_access(load, body.nodes, names) for load in loads(stage.elements, body.nodes))
    apart = [access for access in found if access is not None and access.strides[along] not in (0, 1)]
    points = points_of(body, stage.domain.loops, at)
    return points * sum(SECTOR - access.load.dtype.itemsize for access in apart)

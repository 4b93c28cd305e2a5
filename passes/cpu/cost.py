"""The cost of kernels on a core, in cycles: of the loops of a stage, and of the blocks of a product.

The constants are fitted to network kernels measured on one core of Zen 4, for the least relative error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from passes.emit.memory import CACHE_LINE
from passes.loops.accesses import loads
from passes.loops.body import KernelBody, Stage
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import linear_form
from passes.loops.scalar_dag import Load, indices, walk
from passes.schedule.choice import points_of
from passes.schedule.cost import Evaluate
from passes.schedule.nests import Nest, asks
from passes.schedule.work import operations, selections
from tensorkiln import expr
from tensorkiln.dtypes import DType

from .blocking import BYTE_TILE_CYCLES, BYTE_TILE_STEPS, Blocking
from .factors import Factors
from .few_rows import FEW_ROWS, STEPS
from .machine import PAIR, Machine
from .packing import InPlace, InRows, Packed, Source

OPERATION: Final = 0.26
"""Cycles of a vector operation, as all constants here; independent operations overlap."""
ACCESS: Final = 1.3
"""A vector loaded from or stored to contiguous memory."""
STRIDED: Final = 0.35
"""An element of a vector with strided elements."""
FAR: Final = 4.0
"""The same if each element is in a cache line of its own."""
REST, REST_SUM = 1.3, 3.0
"""An element after the last whole vector of a loop, and one that is added to a sum in memory."""
GUARDED_POINT: Final = 0.7
GUARD: Final = 0.35
"""Loops with conditional reads run point by point: the cost of a point, and of each such read."""
MASKED: Final = 4.0
GATHERED: Final = 1.5
"""A read under a mask that depends on the loop, and a gathered element, in strips of vectors."""
ENTRY: Final = 4.5
"""Entering an innermost loop."""
ROW_SUM: Final = 9.0
"""Combining the accumulator vectors of a row."""
LOADED: Final = 0.15
"""An element or a vector loaded for the products of a register tile."""
STEP: Final = 1.0
"""A step of the loop over the depth of a register tile: its scalar instructions take the places of products."""
PANEL: Final = 0.3
"""The same in each panel after the first that the tile reads side by side. These two are measured on Emerald Rapids,
where in networks tiles of 14 rows and 2 vectors take 0.95 of the time of 4 or 6 rows and 4 vectors.
"""
PACK_VECTOR: Final = 2.6
PACK_ELEMENT: Final = 1.2
PACK_SQUARE: Final = 0.6
"""Packing: a contiguous vector, an element through offset tables, and an element in transposed squares."""


def nest_cycles(body: KernelBody, nest: Nest, machine: Machine, at: Evaluate) -> float:
    """Cycles of a nest in all rows."""
    stage = nest.stage
    if not nest.loops:
        points = points_of(body, stage.domain.loops, at)
        return ENTRY * points + OPERATION * points * operations(body, stage)
    last = nest.along
    length = points_of(body, [last], at)
    around = points_of(body, [loop for loop in stage.domain.loops if loop != last], at)
    lanes = machine.vectors.lanes(DType.FLOAT32)
    work = operations(body, stage) + selections(body, stage)
    if nest.strip:
        return around * ceil(length / lanes) * _strip_cycles(body, stage, last, lanes, work)
    return around * _entry_cycles(body, stage, last, length, lanes, work)


def _entry_cycles(body: KernelBody, stage: Stage, last: Loop, length: int, lanes: int, work: int) -> float:
    read = loads(stage.elements, body.nodes)
    guards = sum(asks(load, last) for load in read)
    if guards:
        return ENTRY + length * (GUARDED_POINT + guards * GUARD)
    contiguous = 0 if last.is_reduction else len(stage.stores) + 2 * (stage.combine is not None)
    elements = 0.0
    for load in read:
        stride = _stride(body, load, last)
        if stride == 1:
            contiguous += 1
        elif stride != 0:
            is_far = not isinstance(stride, int) or abs(stride) * load.dtype.itemsize >= CACHE_LINE
            elements += FAR if is_far else STRIDED
    vectors, rest = divmod(length, lanes)
    whole = vectors * (work * OPERATION + contiguous * ACCESS + lanes * elements)
    adds_to_memory = stage.combine is not None and not last.is_reduction
    return ENTRY + ROW_SUM * last.is_reduction + whole + rest * (REST_SUM if adds_to_memory else REST)


def _strip_cycles(body: KernelBody, stage: Stage, strip: Loop, lanes: int, work: int) -> float:
    """Cycles of a vector of points of a strip, for one point of its window."""
    cycles = work * OPERATION + (len(stage.stores) if stage.combine is None else 0) * ACCESS
    for load in loads(stage.elements, body.nodes):
        stride = _stride(body, load, strip)
        cycles += ACCESS if stride in (0, 1) else 4 * ACCESS if stride == 2 else GATHERED * lanes
        cycles += MASKED * asks(load, strip)
    return cycles


def _stride(body: KernelBody, load: Load, loop: Loop) -> expr.Dim | None:
    """The stride of the read along the loop; None if it is not constant."""
    form = linear_form(load.address, [loop.name])
    if form is None:
        return None
    read = [body.nodes.dynamic[name] for name in expr.free_symbols(form[0]) & body.nodes.dynamic.keys()]
    varies = any(loop.name in expr.free_symbols(index) for node in walk(read, body.nodes) for index in indices(node))
    return None if varies else form[1][0]


def product_cycles(factors: Factors, blocking: Blocking, machine: Machine, at: Evaluate) -> float:
    """Cycles of a blocked contraction: whole register tiles, and packing. For few rows, streaming without them."""
    parts = factors.parts
    batch, rows, columns, depth = (at(extent_of(loops)) for loops in _loops(parts))
    if factors.streams is not False and rows <= FEW_ROWS:
        steps = batch * rows * ceil(columns / blocking.lanes) * depth
        packed = _packing(factors.left, batch * rows * depth * ceil(columns / blocking.block_columns), blocking)
        return packed + steps * (1 / machine.core.products + 2 * ACCESS / STEPS)
    row_tiles, column_tiles = ceil(rows / blocking.tile_rows), ceil(columns / blocking.tile_columns)
    vectors = ceil(columns / blocking.lanes)
    row_blocks, column_blocks = ceil(rows / blocking.block_rows), ceil(columns / blocking.block_columns)
    packed = _packing(factors.left, batch * row_tiles * blocking.tile_rows * depth * column_blocks, blocking)
    packed += _packing(factors.right, batch * columns * depth * row_blocks, blocking)
    stores = batch * rows * vectors * ceil(depth / blocking.block_depth)
    if blocking.has_byte_tiles:
        tiles = batch * row_tiles * ceil(depth / BYTE_TILE_STEPS) * vectors
        return tiles * BYTE_TILE_CYCLES + packed + 2 * stores * ACCESS
    steps = batch * row_tiles * ceil(depth / factors.steps)
    # The products of pairs are added to the accumulator by an instruction of its own.
    instructions = 2 if factors.steps == PAIR else 1
    products = steps * vectors * blocking.tile_rows * instructions / machine.core.products
    side_by_side = blocking.tile_columns // factors.right.tile if isinstance(factors.right, Packed) else 1
    around = STEP + PANEL * max(side_by_side - 1, 0)
    products += steps * (column_tiles * (blocking.tile_rows * LOADED + around) + vectors * LOADED)
    return products + packed + stores * ACCESS


def _loops(parts: Contraction) -> tuple[Sequence[Loop], ...]:
    return parts.batch, parts.rows, parts.columns, parts.depth


def _packing(source: Source | Packed | InRows | InPlace, elements: int, blocking: Blocking) -> float:
    if not isinstance(source, Source):
        return 0.0
    if source.is_contiguous:
        return elements / blocking.lanes * PACK_VECTOR
    if source.is_transposed:
        return elements * PACK_SQUARE
    return elements * (PACK_ELEMENT + GUARD * len(source.conditions))

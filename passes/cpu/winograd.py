"""The strategy for 3x3 convolutions of stride 1 by minimal filtering, under `fast_math`.

F(2x2, 3x3) takes 16 products for 4 results instead of 36, F(4x4, 3x3) 36 products for 16 results instead of 144. A
work-group transforms the squares of some rows of the image; for each panel of columns it then transforms the filters,
multiplies with the micro-kernel, and transforms the sums into a block of results, which the maps read. Filters are
transformed again by each work-group: read from memory transformed, they would have 1.8 or 4 times as many bytes.

The error of a result is bounded by the rounding unit, times the sum over the channels of |square| |filter|, times the
number of channels plus a constant, times (|A| |G| |B|)**2, all in Frobenius norms: 168 for F(2x2, 3x3), 40 000 for
F(4x4, 3x3) (Barabasz, Anderson, Soodhalter and Gregg, Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks, ACM TOMS 46(4), 2020). Layers of random numbers differ from direct sums by 5e-7
and 4e-6 of the largest result. The bound of a direct sum has the terms of that sum only. So a result near much larger
elements may have no correct digit, a sum of elements may overflow, and an infinite element gives NaN where the direct
sum is infinite. No option but `fast_math` allows that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from dialect.mlir import arith, func, ir
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.regions import loop
from passes.loops.domain import extent_of
from passes.origins import at_stage
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.nests import Nest
from passes.schedule.record import kernel_item, nested, on_processors, placed, tiles_of
from passes.schedule.work import moved_bytes
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.schedule import KernelItem

from .block_maps import Block, emit_maps
from .blocking import VECTORS_PER_TILE, Blocking, tallest_tile
from .convolution import Convolution
from .cost import ACCESS, LOADED, OPERATION, nest_cycles
from .filtering import DTYPE, TAPS, block_function, filter_function, image_function, result_function, square
from .frame import Frame
from .machine import Machine
from .micro_kernel import LeftSteps, Prefetches, micro_kernel
from .shared_functions import module_of

NAME = "winograd"
SIZES: Final = (2, 4)
"""Height and width of the results of a square."""
IMAGE_BYTES: Final = 256 * 1024
FILTER_BYTES: Final = 160 * 1024
"""Bytes of the transformed squares and of a panel of transformed filters, which stay in the L2 cache together."""
MIN_GROUPS: Final = 4
"""Work-groups that a convolution is divided into, if it is large enough."""
LEAST_SQUARES: Final = 48
"""Squares of a work-group for which transforming the filters again takes a small part of the time."""
APART: Final = 16
"""Elements between the rows of two products, so that they do not fall into the same cache sets."""
HEIGHTS: Final = range(3, 15)
OPERATIONS: Final = {2: (32, 28, 24), 4: (300, 250, 200)}
"""Vector operations of the transforms of a square of an image, of a filter, and of a square of sums. 36 vectors do not
fit the registers: moving them counts as operations."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The `size` of the results of a square, and the sizes of a work-group.

    It has `square_rows` rows of squares and `columns` columns. Products take register tiles of `tile_rows` squares and
    `tile_columns` columns, for `channels` channels at a time.
    """

    size: int
    square_rows: int
    columns: int
    channels: int
    tile_rows: int
    tile_columns: int


def candidates(convolution: Convolution, machine: Machine) -> Iterator[Choice]:
    """One candidate per size of squares, if results may be less accurate."""
    if machine.traits.fast_math and machine.vectors.lanes(DTYPE) == convolution.lanes:
        for size in SIZES:
            plans = _plans(convolution, size, machine)
            plan = min(plans, key=lambda plan: _cycles(convolution, plan, machine))
            yield _choice(convolution, plan, machine)


def _plans(convolution: Convolution, size: int, machine: Machine) -> Iterator[Plan]:
    """Plans with work for every thread, if the image and the filters are large enough."""
    products, tiles, lanes = square(size), ceil(convolution.width / size), convolution.lanes
    rows, tile = ceil(convolution.height / size), VECTORS_PER_TILE * lanes
    panels, batch = ceil(convolution.columns / tile), extent_of(convolution.parts.batch)
    fits = max(FILTER_BYTES // (products * tile * DTYPE.itemsize) // lanes, 1) * lanes
    channels = ceil(convolution.channels / lanes / ceil(convolution.channels / fits)) * lanes
    fits = IMAGE_BYTES // (products * convolution.channels * DTYPE.itemsize * tiles)
    fewest = ceil(rows / max(fits, ceil(LEAST_SQUARES / tiles)))
    for blocks in range(fewest, min(rows, fewest + MIN_GROUPS - 1) + 1):
        square_rows = ceil(rows / blocks)
        around = ceil(rows / square_rows) * max(batch, 1) if isinstance(batch, int) else MIN_GROUPS
        columns = ceil(panels / min(ceil(MIN_GROUPS / around), panels)) * tile
        heights = (each for each in HEIGHTS if each <= tallest_tile(machine.vectors))
        height = min(heights, key=lambda each: (_steps(square_rows * tiles, each, machine), -each))
        yield Plan(size, square_rows, columns, channels, height, tile)


def _steps(squares: int, height: int, machine: Machine) -> float:
    """Cycles of a channel of a panel of columns, for a product of this many squares."""
    vectors = VECTORS_PER_TILE
    cycles = height * vectors / machine.core.products + (height + vectors) * LOADED
    return ceil(squares / height) * cycles


def _choice(convolution: Convolution, plan: Plan, machine: Machine) -> Choice:
    body, parts, size = convolution.body, convolution.parts, plan.size
    batch, row_blocks, column_blocks = _counts(convolution, plan)
    height, width = parts.rows
    tiles = {
        height.name: (plan.square_rows * size, size),
        width.name: (plan.tile_rows,),
        parts.columns[-1].name: (plan.columns, plan.tile_columns),
        parts.depth[-1].name: (plan.channels,),
    }
    nest = nested((*parts.depth, *parts.columns), width=convolution.lanes)
    axes = placed((*parts.batch, *parts.rows), [nest], tiles)
    item = kernel_item(body.function.name, axes, on_processors(expr.mul(batch, row_blocks, column_blocks)))
    scratch = tuple(Scratch(DTYPE, elements) for elements in _Sizes.of(convolution, plan).scratch)

    def cost(at: Evaluate) -> Cost:
        maps = sum(nest_cycles(body, Nest(stage, parts.columns), machine, at) for stage in body.stages[1:])
        return Cost(at(batch) * _cycles(convolution, plan, machine) + maps, moved_bytes(body, at))

    return Choice(NAME, item, scratch, cost)


def _cycles(convolution: Convolution, plan: Plan, machine: Machine) -> float:
    """Cycles of an image: the products, and the three transforms."""
    size, products, lanes = plan.size, square(plan.size), convolution.lanes
    rows, tiles = ceil(convolution.height / size), ceil(convolution.width / size)
    _, row_blocks, column_blocks = _counts(convolution, plan)
    channels, columns = convolution.channels / lanes, ceil(convolution.columns / lanes)
    panels, parts = ceil(convolution.columns / plan.tile_columns), ceil(convolution.channels / plan.channels)
    squares = plan.square_rows * tiles
    steps = row_blocks * panels * products * convolution.channels * _steps(squares, plan.tile_rows, machine)
    sums = rows * tiles * columns * products * parts * ACCESS
    of_image, of_filter, of_sums = OPERATIONS[size]
    image = rows * tiles * channels * column_blocks * (2 * products * ACCESS + of_image * OPERATION)
    taps = TAPS * TAPS
    filters = row_blocks * convolution.channels * columns * ((products + taps) * ACCESS + of_filter * OPERATION)
    results = rows * tiles * columns * ((products + 2 * size * size) * ACCESS + of_sums * OPERATION)
    return steps + sums + image + filters + results


def _counts(convolution: Convolution, plan: Plan) -> tuple[Dim, int, int]:
    """The number of work-groups along batch, rows of squares and columns."""
    blocks = ceil(ceil(convolution.height / plan.size) / plan.square_rows)
    return extent_of(convolution.parts.batch), blocks, ceil(convolution.columns / plan.columns)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Elements of the rows of squares, of a panel of filters and of the sums of each product, of a block, and of the
    part of an image that is not in blocks.
    """

    products: int
    squares: int
    filters: int
    sums: int
    block: int
    image: int

    @classmethod
    def of(cls, convolution: Convolution, plan: Plan) -> _Sizes:
        tiles = ceil(convolution.width / plan.size)
        rows = ceil(plan.square_rows * tiles / plan.tile_rows) * plan.tile_rows
        return cls(
            square(plan.size),
            rows * convolution.channels + APART,
            plan.channels * plan.tile_columns + APART,
            rows * plan.tile_columns + APART,
            (plan.square_rows * plan.size * convolution.width + plan.size) * plan.tile_columns,
            0
            if convolution.image.is_in_blocks
            else convolution.channels * _image_rows(plan) * (convolution.width + TAPS - 1),
        )

    @property
    def scratch(self) -> Sequence[int]:
        of_products = (each * self.products for each in (self.squares, self.filters, self.sums))
        return *of_products, self.block, *((self.image,) if self.image else ())


def _image_rows(plan: Plan) -> int:
    """Rows of the image that a work-group reads."""
    return plan.square_rows * plan.size + TAPS - 1


def realise(convolution: Convolution, item: KernelItem, frame: Frame) -> None:
    """Emit the work-groups of the frame; its buffers are the operands that leave the kernel, then scratch."""
    parts = convolution.parts
    height, width = (tiles_of(item, each.name) for each in parts.rows)
    columns, channels = tiles_of(item, parts.columns[-1].name), tiles_of(item, parts.depth[-1].name)
    plan = Plan(height[1], height[0] // height[1], columns[0], channels[0], width[0], columns[1])
    _Emission(convolution, plan, frame).groups()


class _Emission:
    def __init__(self, convolution: Convolution, plan: Plan, frame: Frame) -> None:
        self.convolution, self.plan, self.frame = convolution, plan, frame
        body, size, lanes = convolution.body, plan.size, convolution.lanes
        self.sizes = _Sizes.of(convolution, plan)
        self.bases = dict(enumerate(frame.buffers[: body.local_from]))
        self.squares, self.filters, self.sums, self.block, *self.copy = frame.buffers[body.local_from :]
        self.tiles = ceil(convolution.width / size)
        module, vectors = module_of(frame.entry), plan.tile_columns // lanes
        self.to_blocks = "" if convolution.image.is_in_blocks else block_function(module, lanes)
        self.image = image_function(module, size, lanes)
        self.weights = filter_function(module, size, lanes, vectors, convolution.filters.tile)
        self.result = result_function(module, size, lanes, vectors)
        blocking = Blocking(lanes, plan.tile_rows, plan.tile_columns, 0, plan.tile_columns, plan.channels)
        self.multiply = micro_kernel(
            module,
            Product(DTYPE, None, frame.machine.traits),
            blocking,
            LeftSteps(1, convolution.channels),
            plan.tile_columns,
            last=blocking.vectors,
            ahead=Prefetches(result=False, right=False, left=False),
        )

    def groups(self) -> None:
        convolution, plan, space = self.convolution, self.plan, self.convolution.body.space
        parts, counts = convolution.parts, _counts(convolution, plan)
        index, groups, last = IndexEmitter(space, self.frame.symbols), expr.mul(*counts), self.frame.last
        if not expr.is_nonnegative(expr.sub(groups, 1), space.symbols):
            # With an empty batch one work-group is launched nevertheless.
            last = arith.MinSIOp(last, index(groups)).result
        with loop("group", self.frame.first, last, 1, index) as here:
            batch, row_block, column_block = space.unflatten(space.add("group", groups), counts)
            positions = space.unflatten(batch, [each.extent for each in parts.batch])
            names = {each.name: here(place) for each, place in zip(parts.batch, positions, strict=False)}
            pixels = plan.square_rows * plan.size * convolution.width
            first_row, column = expr.mul(row_block, pixels), expr.mul(column_block, plan.columns)
            places = {
                "first_row": first_row,
                "rows": expr.minimum(pixels, expr.sub(extent_of(parts.rows), first_row)),
                "first_tile": expr.mul(row_block, plan.square_rows),
                "group_column": column,
                "group_columns": expr.minimum(plan.columns, expr.sub(convolution.columns, column)),
            }
            names |= {name: here(dim) for name, dim in places.items()}
            space.bound("rows", 1, pixels)
            space.bound("first_tile", 0, convolution.height)
            space.bound("group_columns", 1, plan.columns)
            space.add("first_row", extent_of(parts.rows))
            space.add("group_column", convolution.columns)
            self._group(here.inside(names))

    def _group(self, index: IndexEmitter) -> None:
        convolution, body, space = self.convolution, self.convolution.body, self.convolution.body.space
        with at_stage(body.nodes, body.stages[0]):
            self._transform_image(index)
        with loop("panel", 0, symbol("group_columns"), self.plan.tile_columns, index) as here:
            space.bound("panel", 0, self.plan.columns)
            first, tile = expr.add(symbol("group_column"), symbol("panel")), self.plan.tile_columns
            columns = expr.minimum(tile, expr.sub(convolution.columns, first))
            here = here.inside({"first_column": here(first), "columns": here(columns)})
            space.bound("columns", 1, self.plan.tile_columns)
            space.add("first_column", convolution.columns)
            with at_stage(body.nodes, body.stages[0]):
                self._multiply(here)
                self._call(
                    self.result,
                    (self.sums, self.block),
                    (self._rows, self.tiles, convolution.width, self.sizes.sums),
                    here,
                )
            block = Block(self.block, self.plan.tile_columns)
            emit_maps(body, 0, convolution.parts, block, self.bases, self.frame, here)

    @property
    def _rows(self) -> Dim:
        """Rows of squares in this work-group."""
        return expr.ceildiv(symbol("rows"), self.plan.size * self.convolution.width)

    def _transform_image(self, index: IndexEmitter) -> None:
        """Transform the squares; a part of an image that is not in blocks is copied into blocks first."""
        convolution, size = self.convolution, self.plan.size
        image, planes = convolution.image, convolution.channels // convolution.lanes
        last_row, last_pixel = convolution.height + TAPS - 2, convolution.width + TAPS - 2
        memory, places = self.bases[image.operand], (image.first, image.row, image.plane, planes)
        first_tile: Dim = symbol("first_tile")
        if self.copy:
            (copy,), rows = self.copy, _image_rows(self.plan)
            row = (last_pixel + 1) * convolution.lanes
            first = expr.mul(first_tile, size)
            self._call(self.to_blocks, (memory, copy), (*places, first, rows, last_row, last_pixel + 1), index)
            memory, places, first_tile, last_row = copy, (0, row, rows * row, planes), 0, rows - 1
        squares = (first_tile, self._rows, self.tiles, last_row, last_pixel)
        sizes = (*places, *squares, convolution.channels, self.sizes.squares)
        self._call(self.image, (memory, self.squares), sizes, index)

    def _multiply(self, index: IndexEmitter) -> None:
        """Multiply all squares by a panel of filters."""
        convolution, plan, filters, space = (
            self.convolution,
            self.plan,
            self.convolution.filters,
            self.convolution.body.space,
        )
        with loop("first_channel", 0, convolution.channels, plan.channels, index) as here:
            space.add("first_channel", convolution.channels)
            space.bound("channels", 1, plan.channels)
            count = here(expr.minimum(plan.channels, expr.sub(convolution.channels, symbol("first_channel"))))
            here = here.inside({"channels": count})
            first = expr.add(filters.first, expr.mul(symbol("first_column"), filters.size // filters.tile))
            last = expr.sub(expr.floordiv(expr.add(symbol("columns"), convolution.lanes - 1), convolution.lanes), 1)
            sizes = (first, filters.size, last, *convolution.steps, symbol("first_channel"), symbol("channels"))
            self._call(self.weights, (self.bases[filters.operand], self.filters), (*sizes, self.sizes.filters), here)
            starts = arith.cmpi(arith.CmpIPredicate.eq, here(symbol("first_channel")), here(0))
            with loop("product", 0, self.sizes.products, 1, here) as inside:
                product = space.add("product", self.sizes.products)
                squares = expr.mul(self._rows, self.tiles)
                left = expr.add(expr.mul(product, self.sizes.squares), symbol("first_channel"))
                dims = (
                    *(expr.ceildiv(squares, plan.tile_rows), squares, plan.tile_columns, symbol("channels")),
                    *(left, plan.tile_rows * convolution.channels),
                    *(expr.mul(product, self.sizes.filters), plan.channels * plan.tile_columns),
                    *(expr.mul(product, self.sizes.sums), plan.tile_columns),
                )
                memories = (self.squares, self.filters, self.sums)
                func.CallOp([], self.multiply, [*memories, *(inside(dim) for dim in dims), starts])

    def _call(
        self, name: str, memories: tuple[ir.Value, ir.Value], sizes: tuple[Dim, ...], index: IndexEmitter
    ) -> None:
        func.CallOp([], name, [*memories, *(index(size) for size in sizes)])

"""The transforms of minimal filtering, on vectors of channels: one function per kind and vector width.

F(m x m, 3 x 3) computes m x m neighbouring results of a 3x3 convolution from a square of (m + 2) x (m + 2) elements.
With matrices B, G and A, the square d of each channel becomes B'dB, the filter g of each channel and column becomes
GgG', their products element by element are summed over the channels, and A'(sum)A has the results (Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, CVPR 2016; the points are 0, 1, -1, 2, -2 and infinity).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from dialect.mlir import arith, ir, memref, vector
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import Region, loop
from passes.loops.index_space import IndexSpace
from passes.scalar import mlir_scalar
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .shared_functions import shared_function

TAPS: Final = 3
"""Height and width of a filter."""
DTYPE: Final = DType.FLOAT32

Transform = Callable[[Sequence[ir.Value]], Sequence[ir.Value]]
"""The product of a matrix and a column of vectors."""


def square(size: int) -> int:
    """Products of each channel in F(size x size, 3 x 3): the elements of the square of an image."""
    return (size + TAPS - 1) ** 2


def _add(left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.addf(left, right, fastmath=arith.FastMathFlags.contract)


def _sub(left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.subf(left, right, fastmath=arith.FastMathFlags.contract)


def _times(factor: float, value: ir.Value) -> ir.Value:
    constant = arith.constant(mlir_scalar(DTYPE), factor)
    return arith.mulf(value, vector.BroadcastOp(value.type, constant).result, fastmath=arith.FastMathFlags.contract)


def _image_2(d: Sequence[ir.Value]) -> Sequence[ir.Value]:
    return _sub(d[0], d[2]), _add(d[1], d[2]), _sub(d[2], d[1]), _sub(d[1], d[3])


def _filter_2(g: Sequence[ir.Value]) -> Sequence[ir.Value]:
    ends, middle = _times(0.5, _add(g[0], g[2])), _times(0.5, g[1])
    return g[0], _add(ends, middle), _sub(ends, middle), g[2]


def _result_2(m: Sequence[ir.Value]) -> Sequence[ir.Value]:
    return _add(m[0], _add(m[1], m[2])), _sub(_sub(m[1], m[2]), m[3])


def _image_4(d: Sequence[ir.Value]) -> Sequence[ir.Value]:
    even, odd = _sub(d[4], _times(4.0, d[2])), _sub(d[3], _times(4.0, d[1]))
    far, near = _sub(d[4], d[2]), _times(2.0, _sub(d[3], d[1]))
    first = _add(d[4], _sub(_times(4.0, d[0]), _times(5.0, d[2])))
    last = _add(d[5], _sub(_times(4.0, d[1]), _times(5.0, d[3])))
    return first, _add(even, odd), _sub(even, odd), _add(far, near), _sub(far, near), last


def _filter_4(g: Sequence[ir.Value]) -> Sequence[ir.Value]:
    ends, middle = _times(-1 / 6, _add(g[0], g[2])), _times(-1 / 6, g[1])
    far, twice = _add(_times(1 / 24, g[0]), _times(1 / 6, g[2])), _times(1 / 12, g[1])
    return _times(0.25, g[0]), _add(ends, middle), _sub(ends, middle), _add(far, twice), _sub(far, twice), g[2]


def _result_4(m: Sequence[ir.Value]) -> Sequence[ir.Value]:
    one, other, two, four = _add(m[1], m[2]), _sub(m[1], m[2]), _add(m[3], m[4]), _sub(m[3], m[4])
    return (
        _add(m[0], _add(one, two)),
        _add(other, _times(2.0, four)),
        _add(one, _times(4.0, two)),
        _add(m[5], _add(other, _times(8.0, four))),
    )


_TRANSFORMS: Final[Mapping[int, tuple[Transform, Transform, Transform]]] = {
    2: (_image_2, _filter_2, _result_2),
    4: (_image_4, _filter_4, _result_4),
}


def _twice(transform: Transform, values: Sequence[Sequence[ir.Value]]) -> Sequence[Sequence[ir.Value]]:
    """The matrix times rows of vectors times the transposed matrix."""
    columns = [transform([row[place] for row in values]) for place in range(len(values[0]))]
    return [transform([column[place] for column in columns]) for place in range(len(columns[0]))]


class _Function:
    """A function `f(source, target, *sizes)` that loads a square of vectors, transforms it and stores another."""

    def __init__(self, arguments: Sequence[ir.Value], sizes: Sequence[str], lanes: int) -> None:
        self.source, self.target, *values = arguments
        self.lanes, self.kind = lanes, ir.VectorType.get([lanes], mlir_scalar(DTYPE))
        self.index = IndexEmitter(IndexSpace(dict.fromkeys(sizes, (0, 1 << 40))), dict(zip(sizes, values, strict=True)))

    def loop(self, name: str, count: Dim, index: IndexEmitter) -> Region:
        index.space.bound(name, 0, 1 << 40)
        return loop(name, 0, count, 1, index)

    def load(self, at: Dim, index: IndexEmitter) -> ir.Value:
        view = strided_view(self.source, at, (self.lanes,), (1,), index)
        return vector.LoadOp(self.kind, view, [index(0)]).result

    def store(self, value: ir.Value, at: Dim, index: IndexEmitter) -> None:
        vector.StoreOp(value, strided_view(self.target, at, (self.lanes,), (1,), index), [index(0)])


def _shared(
    module: ir.Operation, name: str, sizes: Sequence[str], lanes: int, define: Callable[[_Function], None]
) -> str:
    pointer, index = ir.MemRefType.get([], mlir_scalar(DTYPE)), ir.IndexType.get()
    types = [pointer, pointer, *[index] * len(sizes)]
    return shared_function(module, name, types, lambda arguments: define(_Function(arguments, sizes, lanes)))


IMAGE = ("first", "row", "plane", "planes", "first_tile", "tile_rows", "tiles", "last_row", "last_pixel")
IMAGE_SIZES: Final = (*IMAGE, "depth", "between")


def image_function(module: ir.Operation, size: int, lanes: int) -> str:
    """The name of the function that transforms squares of an image into rows of `depth` channels.

    `f(image, rows, *IMAGE_SIZES)`: `tile_rows` rows of `tiles` squares, from row `first_tile` on. The image begins at
    element `first`; its rows are `row` elements apart, its `planes` of `lanes` channels `plane` elements. Beyond
    `last_row` and `last_pixel` these are repeated. The rows of each of the products are `between` elements after those
    of the one before.
    """
    return _shared(module, f"filter_image_{size}_{lanes}", IMAGE_SIZES, lanes, partial(_image, size))


def _image(size: int, function: _Function) -> None:
    reach, lanes = range(size + TAPS - 1), function.lanes
    with (
        function.loop("tile_row", symbol("tile_rows"), function.index) as rows,
        function.loop("channels", symbol("planes"), rows) as planes,
        function.loop("tile", symbol("tiles"), planes) as here,
    ):
        corner = symbol("first") + symbol("channels") * symbol("plane")
        top, left = (symbol("first_tile") + symbol("tile_row")) * size, symbol("tile") * size
        down = [expr.minimum(top + place, symbol("last_row")) * symbol("row") for place in reach]
        across = [expr.mul(expr.minimum(left + place, symbol("last_pixel")), lanes) for place in reach]
        loaded = [[function.load(corner + y + x, here) for x in across] for y in down]
        made = _twice(_TRANSFORMS[size][0], loaded)
        row = symbol("tile_row") * symbol("tiles") + symbol("tile")
        at = row * symbol("depth") + symbol("channels") * lanes
        for number, value in enumerate(value for each in made for value in each):
            function.store(value, at + symbol("between") * number, here)


BLOCK_SIZES: Final = ("first", "row", "plane", "planes", "first_row", "rows", "last_row", "width")


def block_function(module: ir.Operation, lanes: int) -> str:
    """The name of the function that copies rows of an image into blocks of `lanes` channels.

    `f(image, blocks, *BLOCK_SIZES)`: `rows` rows of `width` pixels of each of the `planes` blocks, from row `first_row`
    on; beyond `last_row` it is repeated. The image begins at element `first`; its rows are `row` elements apart, its
    channels `plane`.
    """
    return _shared(module, f"filter_blocks_{lanes}", BLOCK_SIZES, lanes, _blocks)


def _blocks(function: _Function) -> None:
    lanes, rows, width = function.lanes, symbol("rows"), symbol("width")
    with (
        function.loop("channels", symbol("planes"), function.index) as planes,
        function.loop("down", rows, planes) as each,
        function.loop("across", width, each) as here,
    ):
        row = expr.minimum(symbol("first_row") + symbol("down"), symbol("last_row"))
        start = symbol("first") + row * symbol("row") + symbol("across")
        places = [start + (symbol("channels") * lanes + lane) * symbol("plane") for lane in range(lanes)]
        elements = [memref.load(strided_view(function.source, place, (), (), here), []) for place in places]
        pixel = (symbol("channels") * rows + symbol("down")) * width + symbol("across")
        function.store(vector.FromElementsOp(function.kind, elements).result, pixel * lanes, here)


FILTER_SIZES: Final = ("first", "panel", "last_vector", "down", "across", "channel", "first_step", "steps", "between")


def filter_function(module: ir.Operation, size: int, lanes: int, vectors: int, panel: int) -> str:
    """The name of the function that transforms the filters of `vectors` vectors of columns into a panel.

    `f(filters, panel, *FILTER_SIZES)`: `steps` channels from `first_step` on. The panel of the first column is at
    element `first`, each next one of `panel` columns "panel" elements further; after the vector `last_vector` it is
    repeated. In a panel, rows of a filter are `down` steps apart, columns `across`, channels `channel`. The panel of
    each of the products is `between` elements after the one before.
    """
    name = f"filter_weights_{size}_{lanes}_{vectors}_{panel}"
    return _shared(module, name, FILTER_SIZES, lanes, partial(_filters, size, vectors, panel))


def _filters(size: int, vectors: int, panel: int, function: _Function) -> None:
    lanes = function.lanes
    for number in range(vectors):
        column = expr.mul(expr.minimum(number, symbol("last_vector")), lanes)
        of_panel = expr.mul(expr.floordiv(column, panel), symbol("panel"))
        start = symbol("first") + of_panel + expr.floormod(column, panel)
        with function.loop("step", symbol("steps"), function.index) as here:
            channel = (symbol("first_step") + symbol("step")) * symbol("channel")
            taps = [[symbol("down") * y + symbol("across") * x + channel for x in range(TAPS)] for y in range(TAPS)]
            made = _twice(
                _TRANSFORMS[size][1], [[function.load(start + tap * panel, here) for tap in row] for row in taps]
            )
            at = symbol("step") * (vectors * lanes) + number * lanes
            for place, value in enumerate(value for each in made for value in each):
                function.store(value, at + symbol("between") * place, here)


RESULT_SIZES: Final = ("tile_rows", "tiles", "width", "between")


def result_function(module: ir.Operation, size: int, lanes: int, vectors: int) -> str:
    """The name of the function that transforms sums of products into a block of results of `vectors` vectors a row.

    `f(sums, block, *RESULT_SIZES)`: the rows of the block are the pixels of `tile_rows` rows of squares, `width` pixels
    each. Squares are computed whole: their last columns may reach into the next row of pixels, which is stored later,
    and the last ones up to `size` rows of pixels and `size` pixels beyond the block.
    """
    name = f"filter_result_{size}_{lanes}_{vectors}"
    return _shared(module, name, RESULT_SIZES, lanes, partial(_results, size, vectors))


def _results(size: int, vectors: int, function: _Function) -> None:
    reach, stride = size + TAPS - 1, vectors * function.lanes
    with (
        function.loop("tile_row", symbol("tile_rows"), function.index) as rows,
        function.loop("before", symbol("tiles"), rows) as here,
    ):
        # From right to left, so that a pixel beyond a row is replaced by the one of the next row.
        tile = symbol("tiles") - 1 - symbol("before")
        row = (symbol("tile_row") * symbol("tiles") + tile) * stride
        for number in range(vectors):
            at = row + number * function.lanes
            loaded = [
                [function.load(at + symbol("between") * (y * reach + x), here) for x in range(reach)]
                for y in range(reach)
            ]
            for y, values in enumerate(_twice(_TRANSFORMS[size][2], loaded)):
                for x, value in enumerate(values):
                    pixel = (symbol("tile_row") * size + y) * symbol("width") + tile * size + x
                    function.store(value, pixel * stride + number * function.lanes, here)

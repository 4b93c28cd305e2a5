"""Matrix products and convolutions, spelled with expand, windows, mul and sum."""

from __future__ import annotations

from math import prod

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, mul, sub

from .arithmetic import binop, permute, repeated, reshape
from .elementwise import finite_maximum
from .family import NUMBERS
from .movement import expand_to, pad_by
from .pipelines import sheared_windows
from .reduction import reduced
from .shapes import extent
from .sketch import Sketch
from .tolerance import EPSILON, Tolerance, sum_tolerance
from .values import Flavour
from .views import Strided, add_view


def allow_products(sketch: Sketch, dtype: DType, a: int, b: int, terms: int) -> None:
    """A sum of products in free order, where compiled code may keep products wider than a 16-bit dtype rounds them."""
    greatest = finite_maximum(sketch.array_of(a)) * finite_maximum(sketch.array_of(b))
    sketch.tolerate(sum_tolerance(dtype, terms, greatest))
    if dtype in (DType.FLOAT16, DType.BFLOAT16):
        sketch.tolerate(Tolerance(ulps=2, absolute=EPSILON[dtype] * greatest * terms))


def _flavour(sketch: Sketch) -> Flavour:
    return sketch.pick(["grid", "grid", "grid", "special grid", "moderate"])


def _epilogue(sketch: Sketch, x: int) -> int:
    """Sometimes a bias along the last axis and a maximum with 0: neither adds to the error by more than a rounding."""
    dtype, dims = sketch.dtype(x), sketch.dims(x)
    if sketch.flag() and dims:
        bias = reshape(sketch, sketch.input(dtype, (dims[-1],), "grid"), [*[1] * (len(dims) - 1), dims[-1]])
        x = binop(sketch, "add", x, expand_to(sketch, bias, dims))
    return binop(sketch, "max", x, sketch.constant(dtype, 0)) if sketch.flag() else x


def matmul(sketch: Sketch, dtype: DType) -> None:
    """[m, k] by [k, n] as expand, mul, sum; operands stored transposed or not; m, n, k past any register tile."""
    m, n = extent(sketch, 9), extent(sketch, 9, sketch.symbolic)
    k = extent(sketch, 12)
    a, b = _matrix(sketch, dtype, m, k), _matrix(sketch, dtype, k, n)
    product = _summed_product(sketch, a[1], b[1])
    allow_products(sketch, dtype, a[0], b[0], sketch.value(k))
    sketch.output(_epilogue(sketch, product))


def _matrix(sketch: Sketch, dtype: DType, rows: Dim, columns: Dim) -> tuple[int, int]:
    """The input, and the matrix that it is, perhaps transposed."""
    if sketch.flag():
        stored = sketch.input(dtype, (rows, columns), _flavour(sketch))
        return stored, stored
    stored = sketch.input(dtype, (columns, rows), _flavour(sketch))
    return stored, permute(sketch, stored, [1, 0])


def _summed_product(sketch: Sketch, a: int, b: int) -> int:
    (m, _), n = sketch.dims(a), sketch.dims(b)[1]
    if sketch.flag():
        left, right, axis = repeated(sketch, a, 2, n), repeated(sketch, b, 0, m), 1
    else:
        left, right, axis = repeated(sketch, a, 1, n), repeated(sketch, permute(sketch, b, [1, 0]), 0, m), 2
    return reduced(sketch, "sum", binop(sketch, "mul", left, right), [axis], keep=False)


def batched_matmul(sketch: Sketch, dtype: DType) -> None:
    """[b, m, k] by [b, k, n]."""
    batch, m, k, n = (extent(sketch, 5, sketch.symbolic and axis == 0) for axis in range(4))
    a = sketch.input(dtype, (batch, m, k), _flavour(sketch))
    b = sketch.input(dtype, (batch, k, n), _flavour(sketch))
    left, right = repeated(sketch, a, 3, n), repeated(sketch, b, 1, m)
    product = reduced(sketch, "sum", binop(sketch, "mul", left, right), [2], keep=False)
    allow_products(sketch, dtype, a, b, sketch.value(k))
    sketch.output(_epilogue(sketch, product))


def contract_with_epilogue(sketch: Sketch, dtype: DType) -> None:
    m, k, n = (extent(sketch, 9, sketch.symbolic and axis == 0) for axis in range(3))
    a, b = sketch.input(dtype, (m, k), _flavour(sketch)), sketch.input(dtype, (n, k), _flavour(sketch))
    product = sketch.add("contract", dtype, (m, n), in_vars=[a, b], contraction_axes=[[1, 1]])
    allow_products(sketch, dtype, a, b, sketch.value(k))
    sketch.output(_epilogue(sketch, product))


def convolution_by_view(sketch: Sketch, dtype: DType) -> None:
    """[c, h, w] by [o, c, kh, kw] over a view of overlapping windows, padded or not."""
    channels, outputs = sketch.integer(1, 2), sketch.integer(1, 3)
    height, width = extent(sketch, 5, sketch.symbolic), sketch.integer(1, 5)
    kernel = (sketch.integer(1, 3), sketch.integer(1, 3))
    image = sketch.input(dtype, (channels, add(height, kernel[0] - 1), width + kernel[1] - 1), _flavour(sketch))
    border = sketch.integer(0, 1)
    x = pad_by(sketch, image, [(0, 0), (border, border), (border, border)])
    _, rows, columns = sketch.dims(x)
    shape = (channels, sub(rows, kernel[0] - 1), sub(columns, kernel[1] - 1), *kernel)
    windows = add_view(sketch, x, [Strided(shape, (mul(rows, columns), columns, 1, columns, 1))])
    weights = sketch.input(dtype, (outputs, channels, *kernel), _flavour(sketch))
    whole = (outputs, *shape)
    left = expand_to(sketch, reshape(sketch, windows, (1, *shape)), whole)
    right = expand_to(sketch, reshape(sketch, weights, (outputs, channels, 1, 1, *kernel)), whole)
    result = reduced(sketch, "sum", binop(sketch, "mul", left, right), [1, 4, 5], keep=False)
    allow_products(sketch, dtype, image, weights, channels * prod(kernel))
    sketch.output(_epilogue(sketch, result))


def convolution_by_movement(sketch: Sketch, dtype: DType) -> None:
    """[c, n] by [o, c, k] over windows spelled with expand, reshape, pad and shrink."""
    channels, outputs, width = sketch.integer(1, 3), sketch.integer(1, 3), sketch.integer(1, 4)
    count = extent(sketch, 7, sketch.symbolic)
    image = sketch.input(dtype, (channels, add(count, width - 1)), _flavour(sketch))
    weights = sketch.input(dtype, (outputs, channels, width), _flavour(sketch))
    windows = repeated(sketch, sheared_windows(sketch, image, width, count), 0, outputs)
    spread = repeated(sketch, weights, 3, count)
    result = reduced(sketch, "sum", binop(sketch, "mul", windows, spread), [1, 2], keep=False)
    allow_products(sketch, dtype, image, weights, channels * width)
    sketch.output(_epilogue(sketch, result))


def sum_pooling(sketch: Sketch, dtype: DType) -> None:
    """Non-overlapping pools by reshape, over the product of two inputs."""
    rows, pool = extent(sketch, 8, sketch.symbolic), sketch.integer(1, 4)
    a = sketch.input(dtype, (mul(rows, pool), 3), _flavour(sketch))
    b = sketch.input(dtype, (mul(rows, pool), 3), _flavour(sketch))
    pools = reshape(sketch, binop(sketch, "mul", a, b), (rows, pool, 3))
    allow_products(sketch, dtype, a, b, pool)
    sketch.output(reduced(sketch, "sum", pools, [1], keep=sketch.flag()))


NETWORKS = {
    "matmul": (NUMBERS, matmul),
    "batched_matmul": (NUMBERS, batched_matmul),
    "contract_with_epilogue": (NUMBERS, contract_with_epilogue),
    "convolution_by_view": (NUMBERS, convolution_by_view),
    "convolution_by_movement": (NUMBERS, convolution_by_movement),
    "sum_pooling": (NUMBERS, sum_pooling),
}

"""Softmax, layer normalization, attention, activations."""

from __future__ import annotations

from math import e, log2

from tensorkiln.dtypes import DType

from .arithmetic import binop, over_last, permute, repeated, reshape, unary
from .elementwise import finite_maximum
from .family import FLOATS
from .movement import expand_to
from .reduction import reduced
from .shapes import extent, shape
from .sketch import Sketch
from .tolerance import EPSILON, Tolerance

_WIDE = (DType.FLOAT32, DType.FLOAT64)
_LOG2_E = log2(e)


def softmax_of(sketch: Sketch, x: int) -> int:
    """Over the last axis: e**(x - max), divided by its sum."""
    shifted = binop(sketch, "sub", x, over_last(sketch, "max", x))
    scaled = binop(sketch, "mul", shifted, sketch.constant(sketch.dtype(x), _LOG2_E))
    powers = unary(sketch, "exp2", scaled)
    total = over_last(sketch, "sum", powers)
    if sketch.flag():
        return binop(sketch, "fdiv", powers, total)
    return binop(sketch, "mul", powers, unary(sketch, "recip", total))


def softmax(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=200), sketch.pick(["moderate", "special grid"]))
    terms = sketch.shape(x)[-1]
    # exp2 is 2 steps off, a sum of positive terms at most terms / 2 more, the quotient 2.
    sketch.tolerate(Tolerance(ulps=8 + terms if dtype in _WIDE else 8))
    sketch.output(softmax_of(sketch, x))


def layer_normalization(sketch: Sketch, dtype: DType) -> None:
    """(x - mean) / sqrt(variance + 1/64) * gain + bias; the count is a sum of ones, so that it may be symbolic."""
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=200), "grid")
    count = over_last(sketch, "sum", _filled(sketch, x, 1.0))
    centred = binop(sketch, "sub", x, binop(sketch, "fdiv", over_last(sketch, "sum", x), count))
    squares = over_last(sketch, "sum", binop(sketch, "mul", centred, centred))
    variance = binop(sketch, "add", binop(sketch, "fdiv", squares, count), sketch.constant(dtype, 1 / 64))
    scale = unary(sketch, "recip", unary(sketch, "sqrt", variance))
    gain, bias = (sketch.input(dtype, sketch.dims(x), "grid") for _ in range(2))
    scaled = binop(sketch, "mul", binop(sketch, "mul", centred, scale), gain)
    # The scale is at most 8, and multiplies what centring loses: a few steps of x, whose greatest is 4, as is gain's.
    sketch.tolerate(Tolerance(ulps=16, absolute=EPSILON[dtype] * 8 * 4 * 4 * (8 + sketch.shape(x)[-1])))
    sketch.output(binop(sketch, "add", scaled, bias))


def _filled(sketch: Sketch, like: int, value: float) -> int:
    dims = sketch.dims(like)
    one = reshape(sketch, sketch.constant(sketch.dtype(like), value), [1] * len(dims))
    return expand_to(sketch, one, dims)


def variance(sketch: Sketch, dtype: DType) -> None:
    """Two reductions of one value, one after the other, and both returned."""
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=200), "grid")
    mean = binop(sketch, "fdiv", over_last(sketch, "sum", x), over_last(sketch, "sum", _filled(sketch, x, 1.0)))
    centred = binop(sketch, "sub", x, mean)
    axis = len(sketch.dims(x)) - 1
    squares = reduced(sketch, "sum", binop(sketch, "mul", centred, centred), [axis], keep=False)
    terms = sketch.shape(x)[-1]
    sketch.tolerate(Tolerance(ulps=8 + terms, absolute=EPSILON[dtype] * 64 * max(terms, 1) * terms))
    sketch.output(mean, squares)


def attention(sketch: Sketch, dtype: DType) -> None:
    """softmax(q k') v for one head."""
    length, width = extent(sketch, 6, sketch.symbolic), sketch.integer(1, 5)
    q, k, v = (sketch.input(dtype, (length, width), "grid") for _ in range(3))
    scores = _rows_by_rows(sketch, q, k)
    weights = softmax_of(sketch, scores)
    # The scores are sums of eighths and exact; a weight is then off as in softmax, and the sum weighs values up to 4.
    terms = sketch.value(length)
    sketch.tolerate(Tolerance(ulps=8, absolute=EPSILON[dtype] * 4 * (8 + terms) * max(terms, 1)))
    sketch.output(_rows_by_rows(sketch, weights, permute(sketch, v, [1, 0])))


def _rows_by_rows(sketch: Sketch, a: int, b: int) -> int:
    """a @ b' as expand, mul, sum."""
    left = repeated(sketch, a, 1, sketch.dims(b)[0])
    right = repeated(sketch, b, 0, sketch.dims(a)[0])
    return reduced(sketch, "sum", binop(sketch, "mul", left, right), [2], keep=False)


def sigmoid_gate(sketch: Sketch, dtype: DType) -> None:
    """x / (1 + e**-x) on moved data, with infinities."""
    x = sketch.input(dtype, shape(sketch), sketch.pick(["moderate", "special grid"]))
    power = unary(sketch, "exp2", binop(sketch, "mul", x, sketch.constant(dtype, -_LOG2_E)))
    gate = unary(sketch, "recip", binop(sketch, "add", power, sketch.constant(dtype, 1.0)))
    sketch.tolerate(Tolerance(ulps=8))
    sketch.output(binop(sketch, "mul", x, gate))


def euclidean_norm(sketch: Sketch, dtype: DType) -> None:
    x = sketch.input(dtype, shape(sketch, low_rank=1, limit=200), "grid")
    axis = sketch.integer(0, len(sketch.dims(x)) - 1)
    squares = reduced(sketch, "sum", binop(sketch, "mul", x, x), [axis], keep=sketch.flag())
    greatest = finite_maximum(sketch.array_of(x))
    terms = sketch.shape(x)[axis]
    # Eighths square to 64ths: the float32 sum is exact, a bfloat16 square is rounded unless it is fused.
    lost = EPSILON[dtype] * greatest**2 * terms if dtype is DType.BFLOAT16 else 0.0
    sketch.tolerate(Tolerance(ulps=2, absolute=lost))
    sketch.output(unary(sketch, "sqrt", squares))


NETWORKS = {
    "softmax": (FLOATS, softmax),
    "layer_normalization": (_WIDE, layer_normalization),
    "variance": (_WIDE, variance),
    "attention": (_WIDE, attention),
    "sigmoid_gate": (FLOATS, sigmoid_gate),
    "euclidean_norm": (FLOATS, euclidean_norm),
}

"""Normalisations. float16 and bfloat16 are computed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .arithmetic import add, divide, mul, power, sub
from .conversion import in_float32
from .movement import reshape
from .operands import axes_of, axis_of, need
from .padding import pad
from .reduction import Axes, max_, mean, sum_
from .transcendental import exp, log, rsqrt, sqrt
from .windows import axis_windows

if TYPE_CHECKING:
    from .tensor import Tensor


def softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """`exp(x) / sum(exp(x))` over the axes, shifted by the maximum so that nothing overflows."""

    def apply(y: Tensor) -> Tensor:
        raised = exp(sub(y, max_(y, axis, keepdims=True)))
        return divide(raised, sum_(raised, axis, keepdims=True))

    return in_float32(apply, x, "softmax")


def log_softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """`log(softmax(x))`, without taking the logarithm of a rounded quotient."""

    def apply(y: Tensor) -> Tensor:
        shifted = sub(y, max_(y, axis, keepdims=True))
        return sub(shifted, log(sum_(exp(shifted), axis, keepdims=True)))

    return in_float32(apply, x, "log_softmax")


def layer_norm(
    x: Tensor,
    axis: int | Sequence[int] = -1,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps)` over the axes, then times `weight` plus `bias`, which broadcast from the right."""
    normal = in_float32(lambda y: _standardised(y, axes_of(x, axis), eps), x, "layer_norm")
    scaled = normal if weight is None else mul(normal, weight)
    return scaled if bias is None else add(scaled, bias)


def _standardised(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    centred = sub(x, mean(x, axes, keepdims=True))
    return mul(centred, rsqrt(add(mean(mul(centred, centred), axes, keepdims=True), eps)))


def rms_norm(x: Tensor, axis: int | Sequence[int] = -1, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """`x / sqrt(mean(x ** 2) + eps)` over the axes, then times `weight`."""
    normal = in_float32(
        lambda y: mul(y, rsqrt(add(mean(mul(y, y), axes_of(x, axis), keepdims=True), eps))), x, "rms_norm"
    )
    return normal if weight is None else mul(normal, weight)


def batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, eps: float = 1e-5, axis: int = 1
) -> Tensor:
    """`scale * (x - mean) / sqrt(variance + eps) + bias`, the four of shape (channels,) and given, not measured."""
    need(x, "batch_norm", floats=True)
    axis = axis_of(x, axis)
    aligned = (x.shape[axis], *(1,) * (len(x.shape) - 1 - axis))
    factor = mul(scale, rsqrt(add(variance, eps)))
    return add(mul(sub(x, reshape(mean, aligned)), reshape(factor, aligned)), reshape(bias, aligned))


def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, axis: int = 1
) -> Tensor:
    """`x / (bias + alpha / size * s) ** beta`, s the sum of squares over the `size` nearest channels (Krizhevsky 2012).

    Of an even number of neighbours, the odd one comes after the channel.
    """
    axis = axis_of(x, axis)
    if size < 1:
        raise x.builder.error(f"a window of {size} channels is empty")

    def apply(y: Tensor) -> Tensor:
        around = [((size - 1) // 2, size // 2) if place == axis else (0, 0) for place in range(len(x.shape))]
        squares = sum_(axis_windows(pad(mul(y, y), around), axis, size), -1)
        return divide(y, _root_power(add(mul(squares, alpha / size), bias), beta))

    return in_float32(apply, x, "local_response_norm")


def _root_power(x: Tensor, exponent: float) -> Tensor:
    """`x ** exponent`, by square roots for the exponents that networks use."""
    if exponent == 0.75:
        return sqrt(mul(x, sqrt(x)))
    return sqrt(x) if exponent == 0.5 else power(x, exponent)

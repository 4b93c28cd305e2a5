"""Quantised numbers: integers or narrow floats that represent `(number - zero point) * scale`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import mul
from .convolution import convolved
from .elementwise import saturates
from .node import Node
from .parameters import element_type
from .value import Value

_WHOLE: Final = MappingProxyType(
    {DType.FLOAT32: (1.5 * 2.0**23, DType.INT32), DType.FLOAT64: (1.5 * 2.0**52, DType.INT64)}
)
"""Between this and a third more or less, floats are the whole numbers, and consecutive ones have consecutive bits."""


def aligned(node: Node, parameter: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point aligned to its axis, with each entry repeated for the elements of its block."""
    if parameter.rank == 0 or (parameter.rank == 1 and parameter.shape[0] == 1):
        return parameter.reshape([1] * x.rank)
    if parameter.rank == 1 and not block:
        return parameter.reshape([1] * axis + [-1] + [1] * (x.rank - 1 - axis))
    if parameter.rank != x.rank or not block:
        node.invalid(f"a scale of rank {parameter.rank} does not fit an operand of rank {x.rank}")
    shape = parameter.shape
    repeated = parameter.unsqueeze([axis + 1]).expand([*shape[: axis + 1], block, *shape[axis + 1 :]])
    whole = repeated.reshape([*shape[:axis], mul(shape[axis], block), *shape[axis + 1 :]])
    return build.shrink(whole, [(0, dim) for dim in x.shape])


def quantized(
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    dtype: DType,
    precision: DType | None = None,
    *,
    saturate: bool = True,
) -> Tensor:
    """Quantise: divide in `precision` (default: the scale's type), round to even, and saturate.

    For a narrow float, the cast of the quotient does the rounding.
    """
    kind = scale.dtype if precision is None else precision
    quotient = x.cast(kind) / scale.cast(kind)
    if dtype.wide.is_integer and kind is not DType.FLOAT64:
        quotient = quotient.cast(DType.FLOAT32)
    return rounded(quotient, zero, dtype, saturate=saturate)


def rounded(x: Tensor, zero: Tensor | None, dtype: DType, *, saturate: bool = True) -> Tensor:
    """`x` rounded to even, plus the zero point, in the range of `dtype`: a float, or an integer of up to 16 bits.

    For an integer, `x` is float32 or float64, and limited first: then adding _WHOLE, which has no low bits, rounds it,
    and the low bits are the integer. NaN becomes the least one.
    """
    if dtype.wide.is_float:
        return (x if zero is None else x + zero.cast(x.dtype)).cast(dtype, saturate=saturate)
    whole, bits = _WHOLE[x.dtype]
    shift = 0.0 if zero is None else zero.cast(x.dtype)
    low, high = float(dtype.min) - shift, float(dtype.max) - shift
    above = build.where(x > low, x, low)
    rounded = (build.where(above < high, above, high) + whole).bitcast(bits)
    return (rounded if zero is None else rounded + zero.cast(bits)).cast(dtype)


def quantize(node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    saturate = saturates(node)
    stated = node.integer("precision", 0) if node.opset >= 23 else 0
    precision = element_type(tensor_dtype_to_np_dtype(stated)) if stated else None
    axis = node.integer("axis", 1) % max(x.rank, 1) if node.opset >= 13 else 0
    block = node.integer("block_size", 0) if node.opset >= 21 else 0
    wanted = node.integer("output_dtype", 0) if node.opset >= 21 else 0
    zero = node.tensor(2) if node.has(2) else None
    dtype = zero.dtype if zero is not None else DType.UINT8
    if wanted and zero is None:
        dtype = element_type(tensor_dtype_to_np_dtype(wanted))
    offset = None if zero is None else aligned(node, zero, x, axis, block)
    return node.shaped(
        x.shape, quantized(x, aligned(node, scale, x, axis, block), offset, dtype, precision, saturate=saturate)
    )


def dequantize(node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", 1) % max(x.rank, 1) if node.opset >= 13 else 0
    block = node.integer("block_size", 0) if node.opset >= 21 else 0
    wanted = node.integer("output_dtype", 0) if node.opset >= 23 else 0
    dtype = element_type(tensor_dtype_to_np_dtype(wanted)) if wanted else scale.dtype
    wide = DType.FLOAT32 if dtype.itemsize < 4 else dtype
    if x.dtype.wide.is_float:
        value = x.cast(wide)
    else:
        value = x.cast(DType.INT64) if wide is DType.FLOAT64 else x.cast(DType.INT32)
    if has_zero(node, 2):
        value = value - aligned(node, node.tensor(2), x, axis, block).cast(value.dtype)
    scaled = value.cast(wide) * aligned(node, scale, x, axis, block).cast(wide)
    return node.shaped(x.shape, scaled.cast(dtype))


def centred(node: Node, place: int, zero: int, align: Callable[[Tensor], Tensor]) -> Tensor:
    """An operand without its zero point: integers in int32, narrow floats in float32."""
    x = node.tensor(place)
    wide = DType.FLOAT32 if x.dtype.wide.is_float else DType.INT32
    return x.cast(wide) - align(node.tensor(zero).cast(wide)) if has_zero(node, zero) else x.cast(wide)


def has_zero(node: Node, place: int) -> bool:
    """Whether a zero point is given and may be other than 0. That of weights mostly is 0."""
    known = node.value(place) if node.has(place) else None
    return known is not None and (isinstance(known, Tensor) or bool(np.any(known != 0)))


def _rows(operand: Tensor) -> Callable[[Tensor], Tensor]:
    """Aligns a parameter of a left operand: one entry, one per row, or the operand's rank."""
    return lambda parameter: (
        parameter.unsqueeze([-1])
        if parameter.rank == 1 < operand.rank and parameter.shape[0] != 1
        else single(parameter)
    )


def single(parameter: Tensor) -> Tensor:
    """A one-element list as a scalar, which adds no axis."""
    return parameter.reshape() if parameter.shape == (1,) else parameter


def matmul_integer(node: Node) -> Value:
    return centred(node, 0, 2, _rows(node.tensor(0))) @ centred(node, 1, 3, single)


def qlinear_matmul(node: Node) -> Value:
    rows, zero = _rows(node.tensor(0)), node.tensor(7)
    total = centred(node, 0, 2, rows) @ centred(node, 3, 5, single)
    scale = rows(node.tensor(1)).cast(DType.FLOAT32) * single(node.tensor(4)).cast(DType.FLOAT32)
    factor = scale / rows(node.tensor(6)).cast(DType.FLOAT32)
    return rounded(total.cast(DType.FLOAT32) * factor, rows(zero), zero.dtype)


def _by_channel(rank: int) -> Callable[[Tensor], Tensor]:
    """Aligns a parameter with one entry per output channel of a convolution's weights."""
    return lambda parameter: parameter.reshape([-1, *(1,) * (rank - 1)]) if parameter.rank else parameter


def conv_integer(node: Node) -> Value:
    rank = node.tensor(1).rank
    x, weight = centred(node, 0, 2, single), centred(node, 1, 3, _by_channel(rank))
    return convolved(node, x, weight, None)


def qlinear_conv(node: Node) -> Value:
    """An integer convolution; a float factor per output channel brings the sums to the result's scale."""
    rank = node.tensor(3).rank
    x, weight = centred(node, 0, 2, single), centred(node, 3, 5, _by_channel(rank))
    total = convolved(node, x, weight, None)
    spatial: Sequence[int] = (1,) * (rank - 2)
    if node.has(8):
        total = total + node.tensor(8).reshape([-1, *spatial])
    weight_scale = node.tensor(4)
    factor = weight_scale.reshape([-1, *spatial]) if weight_scale.rank else weight_scale
    zero = node.tensor(7)
    scale = single(node.tensor(1)).cast(DType.FLOAT32) * factor.cast(DType.FLOAT32)
    ratio = scale / single(node.tensor(6)).cast(DType.FLOAT32)
    return rounded(total.cast(DType.FLOAT32) * ratio, single(zero), zero.dtype)


def dynamically_quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    """A float32 tensor as int32 codes of 8 bits without their zero point, and the scale of rank 0.

    The scale follows from the least and the greatest element, and 0, as in DynamicQuantizeLinear.
    """
    low, high = build.minimum(x.min(), 0.0), build.maximum(x.max(), 0.0)
    extent = (high - low) / 255.0
    scale = build.where(build.equal(extent, 0.0), 1.0, extent)
    zero = rounded((0.0 - low) / scale, None, DType.UINT8)
    return quantized(x, scale, zero, DType.UINT8).cast(DType.INT32) - zero.cast(DType.INT32), scale


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}

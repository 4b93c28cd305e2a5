"""Integers that stand for floats, in models that were quantised after their export, and products of such integers."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from .call import Call, Operator


def _quantized(call: Call) -> Tensor:
    """One scale and one zero point, which are numbers or tensors of one element."""
    x = widened(call.tensor("input"))
    # torch inverts the scale in float64.
    inverse = (1.0 / call.as_tensor(call.operand("scale"), DType.FLOAT64)).reshape([]).cast(x.dtype)
    zero = call.as_tensor(call.operand("zero_point"), x.dtype).reshape([])
    return _held(call, build.rint(x * inverse) + zero)


def _held(call: Call, places: Tensor) -> Tensor:
    least, most = (call.as_tensor(call.operand(name), places.dtype).reshape([]) for name in ("quant_min", "quant_max"))
    return build.minimum(build.maximum(places, least), most).cast(call.dtype)


def _dequantized(call: Call) -> Tensor:
    zero, scale = (call.as_tensor(call.operand(name), call.dtype).reshape([]) for name in ("zero_point", "scale"))
    return (call.tensor("input").cast(call.dtype) - zero) * scale


def _quantized_channels(call: Call) -> Tensor:
    """A scale and a zero point for each element of an axis."""
    x = widened(call.tensor("input"))
    inverse = 1.0 / _along(call, "scales", x.rank)
    kind = DType.FLOAT64 if DType.FLOAT64 in (x.dtype, inverse.dtype) else x.dtype
    return _held(call, build.rint(x.cast(kind) * inverse.cast(kind)) + _along(call, "zero_points", x.rank).cast(kind))


def _dequantized_channels(call: Call) -> Tensor:
    x, scale = call.tensor("input"), _along(call, "scales", call.tensor("input").rank)
    centred = x.cast(scale.dtype)
    if call.has("zero_points"):
        centred = centred - _along(call, "zero_points", x.rank).cast(scale.dtype)
    return (centred * scale).cast(call.dtype)


def _along(call: Call, name: str, rank: int) -> Tensor:
    """A parameter with an element for each one of the axis."""
    axis = call.integer("axis") % rank
    return call.tensor(name).reshape([-1 if place == axis else 1 for place in range(rank)])


def _chosen(call: Call) -> list[Tensor]:
    """The scale and the zero point for all elements of a tensor, and for 0."""
    x = widened(call.tensor("input"))
    least, most = float(call.integer("quant_min")), float(call.integer("quant_max"))
    low, high = build.minimum(x.min(), 0.0), build.maximum(x.max(), 0.0)
    scale = build.maximum((high - low) / (most - least), call.number("eps"))
    zero = build.minimum(build.maximum(least - build.rint(low / scale), least), most)
    return [each.cast(kind).reshape([1]) for each, kind in ((scale, DType.FLOAT64), (zero, DType.INT64))]


def _integer_product(call: Call) -> Tensor:
    return build.matmul(call.tensor().cast(DType.INT32), call.tensor("mat2").cast(DType.INT32))


_SPACE = "quantized_decomposed"
OPERATORS: dict[str, Operator] = {
    "aten._int_mm.default": _integer_product,
    f"{_SPACE}.choose_qparams.tensor": _chosen,
    f"{_SPACE}.dequantize_per_channel.default": _dequantized_channels,
    f"{_SPACE}.dequantize_per_tensor.default": _dequantized,
    f"{_SPACE}.dequantize_per_tensor.tensor": _dequantized,
    f"{_SPACE}.dequantize_per_tensor.tensor2": _dequantized,
    f"{_SPACE}.quantize_per_channel.default": _quantized_channels,
    f"{_SPACE}.quantize_per_tensor.default": _quantized,
    f"{_SPACE}.quantize_per_tensor.tensor": _quantized,
    f"{_SPACE}.quantize_per_tensor.tensor2": _quantized,
}

"""Fake quantization: floats rounded to the values that integers with a scale and a zero point have."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from .call import Call, Operator


def _of_tensor(call: Call) -> list[Tensor]:
    """One scale and one zero point: numbers, or tensors with a switch."""
    x = call.tensor()
    scale, zero = (call.as_tensor(call.operand(name), DType.FLOAT32) for name in ("scale", "zero_point"))
    rounded, is_within = _quantized(call, x, scale.reshape([]), zero.reshape([]))
    if not call.has("fake_quant_enabled"):
        return [rounded, is_within]
    is_on = build.not_equal(call.tensor("fake_quant_enabled").reshape([]), 0)
    return [build.where(is_on, rounded, x), is_within | ~is_on]


def _of_channels(call: Call) -> list[Tensor]:
    """A scale and a zero point for each element of an axis."""
    x = call.tensor()
    axis = call.axis(x, "axis")
    shape = [dim if at == axis else 1 for at, dim in enumerate(x.shape)]
    scale, zero = (call.tensor(name).cast(DType.FLOAT32).reshape(shape) for name in ("scale", "zero_point"))
    return list(_quantized(call, x, scale, zero))


def _quantized(call: Call, x: Tensor, scale: Tensor, zero: Tensor) -> tuple[Tensor, Tensor]:
    """The rounded values, and whether each is in the range of the integers. NaN becomes the least value.

    torch multiplies by the reciprocal of the scale, rounded to float32.
    """
    least, most = call.integer("quant_min"), call.integer("quant_max")
    inverse = 1.0 / scale
    wide = widened(x)
    scale, zero, inverse = (each.cast(wide.dtype) for each in (scale, zero, inverse))
    places = build.rint(wide * inverse) + zero
    is_within = (places >= least) & (places <= most)
    held = build.where(places > least, build.minimum(places, most), least)
    return ((held - zero) * scale).cast(x.dtype), is_within


OPERATORS: dict[str, Operator] = {
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": _of_tensor,
    "aten.fake_quantize_per_channel_affine_cachemask.default": _of_channels,
    "aten.fake_quantize_per_tensor_affine_cachemask.default": _of_tensor,
}

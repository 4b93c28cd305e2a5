"""Fourier transforms along axes of static length: torch's three operators, with their scaling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ..composed.complex_numbers import Complex
from ..composed.fourier import along, from_half, half
from .call import Call

_POWERS = {0: 0.0, 1: -0.5, 2: -1.0}
"""By torch's normalization number: the power of the length that scales a transform."""


def of_real(call: Call) -> Complex:
    """The transform of a real signal; with `onesided`, only half of the last listed axis is returned."""
    x = call.tensor().cast(DType.FLOAT64)
    *others, last = _axes(call, x)
    if call.flag("onesided"):
        moved = half(build.moveaxis(x, last, -1), call.parameter, call.fail)
        found = Complex(*(build.moveaxis(part, -1, last) for part in (moved.real, moved.imag)))
    else:
        found = _along(call, call.pair().cast(DType.FLOAT64), [last], False)
    return _scaled(call, _along(call, found, others, False), _length(call, x, [*others, last]), False)


def of_complex(call: Call) -> Complex:
    x, is_inverse = call.pair().cast(DType.FLOAT64), not call.flag("forward")
    axes = _axes(call, x.real)
    return _scaled(call, _along(call, x, axes, is_inverse), _length(call, x.real, axes), is_inverse)


def to_real(call: Call) -> Tensor:
    """The inverse to a real signal; the last listed axis has half of a transform of `last_dim_size` elements."""
    x, size = call.pair().cast(DType.FLOAT64), call.integer("last_dim_size")
    *others, last = _axes(call, x.real)
    if x.real.shape[last] != size // 2 + 1:
        call.fail(f"{x.real.shape[last]} frequencies are not half of the transform of {size} elements")
    x = _along(call, x, others, True)
    moved = Complex(*(build.moveaxis(part, last, -1) for part in (x.real, x.imag)))
    found = build.moveaxis(from_half(moved, size, call.parameter, call.fail), -1, last)
    length = _length(call, x.real, others) * size
    return (found * _factor(call, length, True)).cast(call.dtype)


def _axes(call: Call, x: Tensor) -> list[int]:
    axes = [axis % max(x.rank, 1) for axis in call.integers("dim")]
    return axes or call.fail("a transform of no axis is not supported")


def _along(call: Call, x: Complex, axes: Sequence[int], is_inverse: bool) -> Complex:
    for axis in axes:
        x = along(x, axis, is_inverse, call.parameter, call.fail)
    return x


def _length(call: Call, x: Tensor, axes: Sequence[int]) -> int:
    total = 1
    for axis in axes:
        size = x.shape[axis]
        total *= size if isinstance(size, int) else call.fail(f"the length {size} of axis {axis} must be known")
    return total


def _factor(call: Call, length: int, is_inverse: bool) -> float:
    """The remaining scale factor: an inverse transform is already divided by its length."""
    power = _POWERS.get(call.integer("normalization"))
    if power is None:
        call.fail(f"the normalization {call.integer('normalization')} is not known")
    return math.pow(length, power) * (length if is_inverse else 1)


def _scaled(call: Call, x: Complex, length: int, is_inverse: bool) -> Complex:
    factor = _factor(call, length, is_inverse)
    return Complex(x.real * factor, x.imag * factor).cast(call.dtype)

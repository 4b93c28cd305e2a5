"""Positions of extreme values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arithmetic import negate, sub
from .bits import bit_or, invert
from .comparison import equal, is_nan
from .dimension import dim_value
from .filled import arange
from .movement import flatten, reshape
from .operands import axis_of, require_tensor
from .reduction import max_
from .selection import where

if TYPE_CHECKING:
    from .tensor import Tensor


def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 position of the first greatest element along the axis, or of the flattened tensor; a NaN wins."""
    require_tensor(x, "argmax")
    if axis is None:
        flat = argmax(flatten(x), 0)
        return reshape(flat, (1,) * len(x.shape)) if keepdims else flat
    axis = axis_of(x, axis)
    is_found = equal(x, max_(x, axis, keepdims=True))
    if x.dtype.is_float:
        is_found = bit_or(is_found, is_nan(x))
    length = dim_value(x.builder, x.shape[axis])
    rest = (1,) * (len(x.shape) - 1 - axis)
    # The first match has the greatest distance to the end.
    from_end = reshape(sub(length, arange(x.builder, x.shape[axis])), (x.shape[axis], *rest))
    return sub(length, max_(where(is_found, from_end, 0), axis, keepdims))


def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 position of the first least element along the axis, or of the flattened tensor; a NaN wins."""
    require_tensor(x, "argmin")
    return argmax(negate(x) if x.dtype.is_float else invert(x), axis, keepdims)

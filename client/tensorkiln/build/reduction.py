"""Reductions over axes. The dtype stays; float16 and bfloat16 accumulate in float32 and are rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..expr import Dim, product
from .arithmetic import divide, mul, negate, sub
from .bits import invert
from .conversion import cast, widened
from .dimension import dim_value
from .element_type import DTypeLike, element_type
from .operands import axes_of, need
from .transcendental import sqrt

if TYPE_CHECKING:
    from .tensor import Tensor

Axes: TypeAlias = "int | Sequence[int] | None"


def _reduce(kind: str, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if not axes:
        return x
    kept: list[Dim] = [1 if axis in axes else dim for axis, dim in enumerate(x.shape)]
    shape = kept if keepdims else [dim for axis, dim in enumerate(x.shape) if axis not in axes]
    return x.builder.append("reduce_axis", x.dtype, shape, in_var=x.var, reduce_op_kind=kind, axes=list(axes))


def _accumulate(kind: str, x: Tensor, axis: Axes, keepdims: bool, dtype: DTypeLike | None) -> Tensor:
    result = x.dtype if dtype is None else element_type(dtype, x.builder.error)
    accumulator = result.accumulator
    return cast(_reduce(kind, cast(x, accumulator), axes_of(x, axis), keepdims), result)


def sum_(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over the axes, in `dtype` if given, else in that of `x`; 0 of none. Bools need a dtype to count in."""
    if dtype is None:
        need(x, "sum", floats=True, integers=True)
    return _accumulate("sum", x, axis, keepdims, dtype)


def prod(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The product over the axes, in `dtype` if given, else in the dtype of `x`; 1 of none."""
    if dtype is None:
        need(x, "prod", floats=True, integers=True)
    return _accumulate("prod", x, axis, keepdims, dtype)


def max_(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest over the axes, NaN if there is one; the least value of the dtype of none."""
    return _reduce("max", x, axes_of(x, axis), keepdims)


def min_(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least over the axes, NaN if there is one; the greatest value of the dtype of none."""
    axes = axes_of(x, axis)
    if x.dtype.is_float:
        return negate(_reduce("max", negate(x), axes, keepdims))
    return invert(_reduce("max", invert(x), axes, keepdims))


def any_(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether any bool over the axes holds."""
    need(x, "any", bools=True)
    return _reduce("max", x, axes_of(x, axis), keepdims)


def all_(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all bools over the axes hold."""
    need(x, "all", bools=True)
    return _reduce("prod", x, axes_of(x, axis), keepdims)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean of floats over the axes; NaN of none."""
    need(x, "mean", floats=True)
    return cast(_mean(widened(x), axes_of(x, axis), keepdims), x.dtype)


def _mean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    count = dim_value(x.builder, product(x.shape[axis] for axis in axes), x.dtype)
    return divide(_reduce("sum", x, axes, keepdims), count)


def var(x: Tensor, axis: Axes = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The mean squared distance from the mean, in two passes; the divisor is the count less `correction`."""
    need(x, "var", floats=True)
    return cast(_var(widened(x), axes_of(x, axis), keepdims, correction), x.dtype)


def _var(x: Tensor, axes: tuple[int, ...], keepdims: bool, correction: int) -> Tensor:
    centred = sub(x, _mean(x, axes, keepdims=True))
    count = dim_value(x.builder, product(x.shape[axis] for axis in axes) - correction, x.dtype)
    return divide(_reduce("sum", mul(centred, centred), axes, keepdims), count)


def std(x: Tensor, axis: Axes = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The square root of `var`."""
    need(x, "std", floats=True)
    return cast(sqrt(_var(widened(x), axes_of(x, axis), keepdims, correction)), x.dtype)

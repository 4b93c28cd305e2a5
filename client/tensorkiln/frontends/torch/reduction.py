"""Reductions over axes, in torch's element type of the result."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from ...expr import product, sub
from .call import Call, Operator
from .comparison import truth


def _reduced(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    """A reduction whose operand is first cast to the element type of the result."""

    def apply(call: Call) -> Tensor:
        x = call.tensor()
        return function(x.cast(call.dtype), call.axes(x), call.flag("keepdim"))

    return apply


def _truth(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    """Whether any or all elements are true; for uint8 operands torch's result is uint8."""

    def apply(call: Call) -> Tensor:
        x = call.tensor()
        # For an empty list of axes, torch reduces all axes of numbers, but none for truth values.
        axes = [] if call.value("dim") == () else call.axes(x)
        return function(truth(x), axes, call.flag("keepdim")).cast(call.dtype)

    return apply


def _extreme(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    def apply(call: Call) -> Tensor:
        x = call.tensor()
        axes = call.axes(x)
        if any(x.builder.bounds(x.shape[axis])[0] == 0 for axis in axes):
            call.fail("an axis that may be empty has no extreme element")
        return function(x, axes, call.flag("keepdim"))

    return apply


def _extreme_along(is_max: bool) -> Operator:
    """Extreme values along an axis and their positions; NaN wins, and the first of equal values."""

    def apply(call: Call) -> list[Tensor]:
        x = call.tensor()
        axis, keepdim = call.axis(x), call.flag("keepdim")
        if not x.shape:
            return [x, build.zeros(x.builder, (), DType.INT64)]
        _need_elements(call, x, axis)
        value = x.max(axis, keepdim) if is_max else x.min(axis, keepdim)
        if not call.is_read(1):
            return [value]
        return [value, (build.argmax if is_max else build.argmin)(x, axis, keepdim)]

    return apply


def _position(is_max: bool) -> Operator:
    def apply(call: Call) -> Tensor:
        x = call.tensor()
        search = build.argmax if is_max else build.argmin
        if not x.shape:
            return build.zeros(x.builder, (), DType.INT64)
        if not call.has("dim"):
            return search(x, None, call.flag("keepdim"))
        axis = call.axis(x)
        _need_elements(call, x, axis)
        return search(x, axis, call.flag("keepdim"))

    return apply


def _need_elements(call: Call, x: Tensor, axis: int) -> None:
    if x.builder.bounds(x.shape[axis])[0] == 0:
        call.fail(f"axis {axis} of {x.shape[axis]} elements may be empty, which has no extreme element")


def _spread(call: Call, x: Tensor) -> Tensor:
    """The variance, in float32 at least; NaN or infinite when the correction is at least the number of elements."""
    axes, keepdim = call.axes(x), call.flag("keepdim")
    correction = call.number("correction", 1.0)
    if "unbiased" in call.arguments:
        correction = 1.0 if call.flag("unbiased", True) else 0.0
    wide = widened(x)
    centred = wide - wide.mean(axes, True)
    squares = (centred * centred).sum(axes, keepdim)
    count = product(x.shape[axis] for axis in axes)
    if isinstance(correction, float) and not correction.is_integer():
        degrees = build.dim_value(x.builder, count, wide.dtype) - correction
    else:
        degrees = build.dim_value(x.builder, sub(count, int(correction)), wide.dtype)
    return squares / build.maximum(degrees, 0.0)


def _variance(call: Call) -> Tensor:
    x = call.tensor()
    return _spread(call, x).cast(x.dtype)


def _deviation(call: Call) -> Tensor:
    x = call.tensor()
    return _spread(call, x).sqrt().cast(x.dtype)


def _variance_and_mean(call: Call) -> list[Tensor]:
    x = call.tensor()
    return [_variance(call), x.mean(call.axes(x), call.flag("keepdim"))]


def log_sum_exp(x: Tensor, axes: list[int], keepdim: bool) -> Tensor:
    """log(sum(exp(x))), shifted by the maximum against overflow; an infinite maximum is not subtracted."""
    wide = widened(x)
    most = wide.max(axes, True)
    shift = build.where(build.absolute(most) < float("inf"), most, 0.0)
    total = (wide - shift).exp().sum(axes, True).log() + shift
    return (total if keepdim else total.squeeze(axes)).cast(x.dtype)


def _norm(call: Call) -> Tensor:
    """The p-norm over the axes; the 0-norm counts nonzero elements."""
    x = call.tensor().cast(call.dtype)
    return _of_order(call, x, call.number("ord", 2.0), call.axes(x), call.flag("keepdim"))


def _distance(call: Call) -> Tensor:
    x, other = (call.tensor(name).cast(call.dtype) for name in ("self", "other"))
    difference = x - other
    return _of_order(call, difference, call.number("p", 2.0), list(range(difference.rank)), False)


def _of_order(call: Call, x: Tensor, order: float, axes: list[int], keepdim: bool) -> Tensor:
    wide = build.absolute(widened(x))
    if math.isinf(order):
        found = wide.max(axes, keepdim) if order > 0 else wide.min(axes, keepdim)
    elif order == 0:
        found = build.not_equal(wide, 0.0).cast(wide.dtype).sum(axes, keepdim)
    elif order == 1:
        found = wide.sum(axes, keepdim)
    elif order == 2:
        found = (wide * wide).sum(axes, keepdim).sqrt()
    else:
        found = (wide**order).sum(axes, keepdim) ** (1.0 / order)
    return found.cast(call.dtype)


OPERATORS: dict[str, Operator] = {
    "aten.linalg_vector_norm.default": _norm,
    "aten.all.default": _truth(lambda x, axes, keep: x.all(axes, keep)),
    "aten.all.dim": _truth(lambda x, axes, keep: x.all(axes, keep)),
    "aten.all.dims": _truth(lambda x, axes, keep: x.all(axes, keep)),
    "aten.amax.default": _extreme(lambda x, axes, keep: x.max(axes, keep)),
    "aten.amin.default": _extreme(lambda x, axes, keep: x.min(axes, keep)),
    "aten.any.default": _truth(lambda x, axes, keep: x.any(axes, keep)),
    "aten.any.dim": _truth(lambda x, axes, keep: x.any(axes, keep)),
    "aten.any.dims": _truth(lambda x, axes, keep: x.any(axes, keep)),
    "aten.argmax.default": _position(True),
    "aten.argmin.default": _position(False),
    "aten.dist.default": _distance,
    "aten.logsumexp.default": _reduced(log_sum_exp),
    "aten.max.default": _extreme(lambda x, axes, keep: x.max(axes, keep)),
    "aten.max.dim": _extreme_along(True),
    "aten.mean.default": _reduced(lambda x, axes, keep: x.mean(axes, keep)),
    "aten.mean.dim": _reduced(lambda x, axes, keep: x.mean(axes, keep)),
    "aten.min.default": _extreme(lambda x, axes, keep: x.min(axes, keep)),
    "aten.min.dim": _extreme_along(False),
    "aten.prod.default": _reduced(lambda x, axes, keep: x.prod(axes, keep, x.dtype)),
    "aten.prod.dim_int": _reduced(lambda x, axes, keep: x.prod(axes, keep, x.dtype)),
    "aten.std.correction": _deviation,
    "aten.std.dim": _deviation,
    "aten.sum.default": _reduced(lambda x, axes, keep: x.sum(axes, keep, x.dtype)),
    "aten.sum.dim_IntList": _reduced(lambda x, axes, keep: x.sum(axes, keep, x.dtype)),
    "aten.var.correction": _variance,
    "aten.var.dim": _variance,
    "aten.var_mean.correction": _variance_and_mean,
}

"""Sorting, top-k, and running reductions."""

from __future__ import annotations

from collections.abc import Callable

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, add, floordiv, sub
from ..composed.ranking import first_in_order
from ..composed.running import running
from ..composed.spreading import between
from .call import Call, Operator
from .reduction import log_sum_exp


def _sort(call: Call) -> list[Tensor]:
    """A stable sort by rank; NaN is greater than all numbers."""
    x = call.tensor()
    if not x.shape:
        return [x, build.zeros(x.builder, (), DType.INT64)]
    axis = call.axis(x, default=-1)
    return _ordered(call, x, axis, x.shape[axis], call.flag("descending"))


def _arg_sort(call: Call) -> Tensor:
    return _sort(call)[1]


def _ordered(call: Call, x: Tensor, axis: int, count: Dim, is_largest: bool) -> list[Tensor]:
    if not x.dtype.is_bool:
        return list(first_in_order(x, axis, count, is_largest, call.fail))
    values, positions = first_in_order(x.cast(DType.UINT8), axis, count, is_largest, call.fail)
    return [values.cast(DType.BOOL), positions]


def _top(call: Call) -> list[Tensor]:
    x = call.tensor()
    if not x.shape:
        return [x, build.zeros(x.builder, (), DType.INT64)]
    axis, count = call.axis(x, default=-1), call.dim("k")
    if x.builder.bounds(sub(x.shape[axis], count))[0] < 0:
        call.fail(f"{count} of {x.shape[axis]} elements may be more than there are")
    return _ordered(call, x, axis, count, call.flag("largest", True))


def _running(combine: Callable[[Tensor], Tensor], neutral: int) -> Operator:
    def apply(call: Call) -> Tensor:
        x = call.tensor().cast(call.dtype)
        if not x.shape:
            return x
        return running(x, call.axis(x), combine, neutral, refuse=call.fail)

    return apply


def _running_extreme(is_max: bool) -> Operator:
    """The running extreme, and the position of its last occurrence."""

    def apply(call: Call) -> list[Tensor]:
        x = call.tensor()
        if not x.dtype.is_float and not x.dtype.is_integer:
            call.fail(f"a running extreme of {x.dtype} is not supported")
        if not x.shape:
            return [x, build.zeros(x.builder, (), DType.INT64)]
        axis = call.axis(x)
        neutral = x.dtype.min if is_max else x.dtype.max
        values = running(x, axis, lambda t: t.max([-1]) if is_max else t.min([-1]), neutral, refuse=call.fail)
        if not call.is_read(1):
            return [values]
        same = build.equal(x, values)
        if x.dtype.is_float:
            same = same | build.is_nan(x)
        places = build.arange(x.builder, x.shape[axis]).reshape([-1, *(1,) * (x.rank - 1 - axis)])
        found = build.where(same, places, 0)
        return [values, running(found, axis, lambda t: t.max([-1]), 0, refuse=call.fail)]

    return apply


def _of_rank(call: Call, x: Tensor, axis: int, place: Dim, keeps: bool) -> list[Tensor]:
    """The element of rank `place` in ascending order, and its position."""
    values, positions = _ordered(call, x, axis, add(place, 1), False)
    found = [between(each, axis, place, add(place, 1)) for each in (values, positions)]
    return found if keeps else [each.squeeze([axis]) for each in found]


def _kth(call: Call) -> list[Tensor]:
    x = call.tensor()
    if not x.shape:
        return [x, build.zeros(x.builder, (), DType.INT64)]
    axis, place = call.axis(x, default=-1), call.integer("k")
    if not 0 < place <= x.builder.bounds(x.shape[axis])[0]:
        call.fail(f"element {place} in the order of {x.shape[axis]} may not be there")
    return _of_rank(call, x, axis, place - 1, call.flag("keepdim"))


def _median(call: Call) -> list[Tensor]:
    """The median, the lower of two middle elements; NaN if there is any."""
    x = call.tensor()
    if not call.has("dim"):
        x = x.reshape([-1])
    if not x.shape:
        return [x, build.zeros(x.builder, (), DType.INT64)]
    axis = call.axis(x) if call.has("dim") else 0
    extent = x.shape[axis]
    if x.builder.bounds(extent)[0] < 1:
        call.fail(f"none of {extent} elements may be in the middle")
    value, place = _of_rank(call, x, axis, floordiv(sub(extent, 1), 2), call.flag("keepdim"))
    if x.dtype.is_float:
        is_nan, keeps = build.is_nan(x), call.flag("keepdim")
        has_nan = is_nan.any([axis], keeps)
        value = build.where(has_nan, float("nan"), value)
        place = build.where(has_nan, build.argmax(is_nan.cast(DType.UINT8), axis, keeps), place)
    return [value, place] if call.has("dim") else [value]


def _running_log_sum(call: Call) -> Tensor:
    x = call.tensor()
    if not x.shape:
        return x
    return running(x, call.axis(x), lambda table: log_sum_exp(table, [-1], False), float("-inf"), refuse=call.fail)


OPERATORS: dict[str, Operator] = {
    "aten.argsort.default": _arg_sort,
    "aten.argsort.stable": _arg_sort,
    "aten.cummax.default": _running_extreme(True),
    "aten.cummin.default": _running_extreme(False),
    "aten.cumprod.default": _running(lambda table: table.prod([-1], dtype=table.dtype), 1),
    "aten.cumsum.default": _running(lambda table: table.sum([-1], dtype=table.dtype), 0),
    "aten.kthvalue.default": _kth,
    "aten.logcumsumexp.default": _running_log_sum,
    "aten.median.default": _median,
    "aten.median.dim": _median,
    "aten.sort.default": _sort,
    "aten.sort.stable": _sort,
    "aten.topk.default": _top,
}

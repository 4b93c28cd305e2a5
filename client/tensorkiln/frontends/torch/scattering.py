"""Scatter operators. An index out of range is dropped, where torch raises an error."""

from __future__ import annotations

from collections.abc import Callable

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import product
from ..composed.placing import identity, put, wrapped
from ..composed.running import running
from .call import Call, Operator

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def _scatter(call: Call) -> Tensor:
    """Scatter, with a reduction if `reduce` is given; without one, torch defines no order of equal indices."""
    how = call.text("reduce", "")
    return _put(call, _updates(call), _REDUCTIONS[how] if how else "none")


def _scatter_add(call: Call) -> Tensor:
    return _put(call, _updates(call), "add")


def _scatter_reduce(call: Call) -> Tensor:
    return _combined(call, _updates(call), lambda updates, how, into: _put(call, updates, how, into))


def _index_reduce(call: Call) -> Tensor:
    """Combine whole slices at indexed positions along an axis."""
    return _combined(call, call.tensor("source"), lambda updates, how, into: _put_slices(call, updates, how, into))


def _combined(call: Call, updates: Tensor, place: Callable[[Tensor, str, Tensor], Tensor]) -> Tensor:
    """Combine updates; a mean divides their sum by their number. Without `include_self` old elements do not count.

    `place` combines updates with the elements of a tensor.
    """
    how, includes_self = call.text("reduce"), call.flag("include_self", True)
    if how not in _REDUCTIONS and how != "mean":
        call.fail(f"the reduction {how!r} is not supported")
    x, kind = call.tensor(), _REDUCTIONS.get(how, "add")
    if how != "mean" and includes_self:
        return place(updates, kind, x)
    ones = build.ones(x.builder, updates.shape, DType.INT64)
    counts = place(ones, "add", build.zeros(x.builder, x.shape, DType.INT64))
    begun = x if includes_self else build.where(counts > 0, identity(kind, x.dtype), x)
    found = place(updates, kind, begun)
    if how != "mean":
        return found
    divisors = counts + 1 if includes_self else build.maximum(counts, 1)
    if x.dtype.is_integer:
        return found // divisors.cast(x.dtype)
    wide = x.dtype.accumulator
    return (found.cast(wide) / divisors.cast(wide)).cast(x.dtype)


def _updates(call: Call) -> Tensor:
    x, index = call.tensor(), call.tensor("index")
    if call.has("src"):
        source = call.tensor("src")
        # torch uses only the first elements of a larger source.
        limits = [(0, dim) for dim in index.shape]
        return build.shrink(source, limits) if source.shape else source
    value = call.as_tensor(call.operand("value"), x.dtype)
    return value.reshape([1] * index.rank).expand(index.shape)


def _put(call: Call, updates: Tensor, how: str, into: Tensor | None = None) -> Tensor:
    """Scatter into `into`, or into the call's tensor."""
    return _placed(call, call.tensor("index"), updates, how, call.tensor() if into is None else into)


def _placed(call: Call, index: Tensor, updates: Tensor, how: str, into: Tensor) -> Tensor:
    """Scatter to positions along the axis, one for each update; a scalar is one element."""
    index, updates = index.cast(DType.INT64), updates.cast(into.dtype)
    if not into.shape:
        one = [1]
        return put(into.reshape(one), index.reshape(one), updates.reshape(one), 0, how).reshape([])
    return put(into, index, updates, call.axis(into), how)


def _index_add(call: Call) -> Tensor:
    """Add whole slices at indexed positions along an axis."""
    return _put_slices(call, call.times(call.tensor("source"), "alpha"), "add", call.tensor())


def _put_slices(call: Call, updates: Tensor, how: str, into: Tensor) -> Tensor:
    """Scatter slices along the axis to the positions in `index`."""
    index = call.tensor("index")
    if into.shape:
        index = index.reshape([-1, *(1,) * (into.rank - 1 - call.axis(into))]).expand(updates.shape)
    return _placed(call, index, updates, how, into)


def _put_flat(call: Call) -> Tensor:
    """Put elements at positions of the flattened tensor, of which negative ones count from the end."""
    x, index, source = call.tensor(), call.tensor("index").cast(DType.INT64), call.tensor("source")
    whole, count = product(x.shape), product(index.shape)
    places = wrapped(index.reshape([count]), whole)
    how = "add" if call.flag("accumulate") else "none"
    return put(x.reshape([whole]), places, source.cast(x.dtype).reshape([count]), 0, how).reshape(x.shape)


def _masked_scatter(call: Call) -> Tensor:
    """Put the elements of the source, in order, where the mask is true."""
    x, source = call.tensor(), call.tensor("source").cast(call.tensor().dtype)
    shape = call.result_shape()
    mask, count = call.tensor("mask").expand(shape), product(shape)
    hits = mask.reshape([count]).cast(DType.INT64)
    number = running(hits, 0, lambda table: table.sum([-1]), 0, is_exclusive=True, refuse=call.fail)
    found = build.take(source.reshape([product(source.shape)]), number, 0).reshape(shape)
    return build.where(mask, found, x.expand(shape))


OPERATORS: dict[str, Operator] = {
    "aten.index_add.default": _index_add,
    "aten.index_reduce.default": _index_reduce,
    "aten.masked_scatter.default": _masked_scatter,
    "aten.put.default": _put_flat,
    "aten.scatter.reduce": _scatter,
    "aten.scatter.src": _scatter,
    "aten.scatter.value": _scatter,
    "aten.scatter.value_reduce": _scatter,
    "aten.scatter_add.default": _scatter_add,
    "aten.scatter_reduce.two": _scatter_reduce,
}

"""Gather and scatter by computed index. An index out of range gives zeros, where torch raises an error."""

from __future__ import annotations

from collections.abc import Sequence

from ... import build
from ...build import Tensor
from ...build.broadcast import broadcast_shape
from ...dtypes import DType
from ...expr import Dim, product
from ..composed.placing import put, wrapped
from .call import Call, Operator


def _index_select(call: Call) -> Tensor:
    x, index = call.tensor(), call.tensor("index")
    if not x.shape:
        return x
    axis = call.axis(x)
    found = build.take(x, wrapped(index, x.shape[axis]), axis)
    return found if index.shape else found.unsqueeze(axis)


def _gather(call: Call) -> Tensor:
    x, index = call.tensor(), call.tensor("index")
    if 0 in index.shape:
        return build.zeros(x.builder, index.shape, x.dtype)
    if not x.shape or not index.shape:
        return build.gather(x.reshape([1]), index.reshape([1]), 0).reshape(index.shape)
    return build.gather(x, index, call.axis(x))


def _embedding(call: Call) -> Tensor:
    return build.take(call.tensor("weight"), call.tensor("indices"), 0)


def _embedding_gradient(call: Call) -> Tensor:
    """The sum of the gradients of each row of the table; zero for the padding row."""
    gradient, indices = call.tensor("grad_output"), call.tensor("indices")
    rows, padding = call.integer("num_weights"), call.integer("padding_idx", -1)
    if call.flag("scale_grad_by_freq"):
        call.fail("scale_grad_by_freq is not supported")
    width, count = gradient.shape[-1], product(indices.shape)
    places, flat = indices.reshape([count]).cast(DType.INT64), gradient.reshape([count, width])
    if padding >= 0:
        places = build.where(build.equal(places, padding), -1, places)
    table = build.zeros(flat.builder, [rows, width], flat.dtype)
    return put(table, places.unsqueeze(1).expand(flat.shape), flat, 0, "add")


def _index(call: Call) -> Tensor:
    x, indices = call.tensor(), _indices(call, call.tensor())
    chosen, places = _flat_places(call, x, indices)
    rest = [axis for axis in range(x.rank) if axis not in chosen]
    flat = x.permute([*chosen, *rest]).reshape(
        [product(x.shape[axis] for axis in chosen), *(x.shape[axis] for axis in rest)]
    )
    found = build.take(flat, places, 0)
    return _between(found, places.rank, chosen, rest)


def _indices(call: Call, x: Tensor) -> list[Tensor | None]:
    """One index or None for each axis. UnsupportedGraphError for a mask, whose result size depends on values."""
    given = call.value("indices")
    listed = given if isinstance(given, tuple) else call.fail("the indices are not a list")
    found: list[Tensor | None] = []
    for each in listed:
        if each is not None and not isinstance(each, Tensor):
            call.fail(f"{each!r} is not an index")
        if each is not None and (each.dtype.is_bool or each.dtype is DType.UINT8):
            call.fail("the number of elements that a mask selects depends on its values; use where")
        found.append(each)
    return [*found, *[None] * (x.rank - len(found))]


def _flat_places(call: Call, x: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[int], Tensor]:
    """The axes that have an index, and the flat positions along these axes."""
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    shape = broadcast_shape(x.builder, [index.shape for index in given])
    total: Tensor | None = None
    inside: Tensor | None = None
    for axis, index in zip(chosen, given, strict=True):
        size = build.dim_value(x.builder, x.shape[axis])
        place = wrapped(index.cast(DType.INT64), x.shape[axis])
        is_in = (place >= 0) & (place < size)
        total = place if total is None else total * size + place
        inside = is_in if inside is None else inside & is_in
    if total is None or inside is None:
        call.invalid("no axis has an index")
    # An index out of range on one axis must not wrap to another row.
    places = build.where(inside, total, -1) if len(chosen) > 1 else total
    return chosen, places if places.shape == shape else places.expand(shape)


def _between(found: Tensor, rank: int, chosen: Sequence[int], rest: Sequence[int]) -> Tensor:
    """Move the index axes to the place of the indexed axes, if these are adjacent; else they stay in front."""
    if list(chosen) != list(range(chosen[0], chosen[0] + len(chosen))):
        return found
    before = sum(axis < chosen[0] for axis in rest)
    own, others = list(range(rank)), [rank + place for place in range(len(rest))]
    return found.permute([*others[:before], *own, *others[before:]])


def _index_put(call: Call) -> Tensor:
    x, values, adds = call.tensor(), call.tensor("values"), call.flag("accumulate")
    given = call.value("indices")
    if isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], Tensor) and given[0].dtype.is_bool:
        return _masked_put(call, x, given[0], values, adds)
    chosen, places = _flat_places(call, x, _indices(call, x))
    rest = [axis for axis in range(x.rank) if axis not in chosen]
    head, tail = product(x.shape[axis] for axis in chosen), [x.shape[axis] for axis in rest]
    flat = x.permute([*chosen, *rest]).reshape([head, product(tail)])
    updates = _in_front(values.cast(x.dtype), places, chosen, rest, x)
    count = product(places.shape)
    shape: list[Dim] = [count, product(tail)]
    where = places.reshape([count, 1]).expand(shape)
    done = put(flat, where, updates.reshape(shape), 0, "add" if adds else "none")
    order = [*chosen, *rest]
    return done.reshape([x.shape[axis] for axis in order]).permute([order.index(axis) for axis in range(x.rank)])


def _in_front(values: Tensor, places: Tensor, chosen: Sequence[int], rest: Sequence[int], x: Tensor) -> Tensor:
    """The values expanded to the shape of the indexed elements, with the index axes first."""
    tail = [x.shape[axis] for axis in rest]
    is_adjacent = list(chosen) == list(range(chosen[0], chosen[0] + len(chosen)))
    before = sum(axis < chosen[0] for axis in rest) if is_adjacent else 0
    whole = values.expand([*tail[:before], *places.shape, *tail[before:]])
    own = list(range(before, before + places.rank))
    return whole.permute([*own, *(axis for axis in range(whole.rank) if axis not in own)])


def _masked_put(call: Call, x: Tensor, mask: Tensor, values: Tensor, adds: bool) -> Tensor:
    """Put one value, or one per position of the unmasked axes, where the mask is true."""
    tail = x.shape[mask.rank :]
    if product(values.shape) == 1:
        one = values.reshape([])
    elif values.rank <= len(tail):
        one = values.expand(tail)
    else:
        call.fail("how many values a mask takes depends on its values; use where")
    one = one.cast(x.dtype)
    aligned = mask.reshape([*mask.shape, *(1,) * (x.rank - mask.rank)])
    return build.where(aligned, x + one if adds else one, x)


MOVING: dict[str, Operator] = {
    "aten._unsafe_index.Tensor": _index,
    "aten.gather.default": _gather,
    "aten.index.Tensor": _index,
    "aten.index_put.default": _index_put,
    "aten.index_select.default": _index_select,
}
OPERATORS: dict[str, Operator] = {
    **MOVING,
    "aten._unsafe_index_put.default": _index_put,
    "aten.embedding.default": _embedding,
    "aten.embedding_dense_backward.default": _embedding_gradient,
}
"""`MOVING` are the operators that only move elements and so apply to both parts of complex numbers."""

"""Views that strides describe, of tensors which lie row by row without gaps."""

from __future__ import annotations

from collections.abc import Sequence

from ... import build
from ...build import Tensor
from ...expr import Dim, add, mul, product, sub
from .call import Call, Operator
from .exported import Ref, TensorType
from .sizes import is_dense


def _as_strided(call: Call) -> Tensor:
    """Elements by their places in memory, which are those in the flat tensor."""
    x, source = call.tensor(), call.operation.arguments.get("self")
    known = call.types.get(source.name) if isinstance(source, Ref) else None
    if not isinstance(known, TensorType) or not known.is_dense:
        call.fail("its tensor does not lie row by row without gaps: take .contiguous() of it before")
    sizes, strides, offset = call.dims("size"), call.dims("stride"), call.dim("storage_offset", 0)
    if any(size == 0 for size in sizes):
        return build.zeros(x.builder, sizes, x.dtype)
    total = product(x.shape)
    last = add(offset, *(mul(sub(size, 1), stride) for size, stride in zip(sizes, strides, strict=True)))
    if any(x.builder.bounds(each)[0] < 0 for each in (offset, *strides, sub(total, add(last, 1)))):
        call.fail(f"it reaches from element {offset} to {last} of {total}, which may be outside of the tensor")
    return _taken(x.reshape([total]), sizes, strides, offset)


def _taken(flat: Tensor, sizes: Sequence[Dim], strides: Sequence[Dim], offset: Dim) -> Tensor:
    count = product(sizes)
    if is_dense(sizes, strides):
        return build.shrink(flat, [(offset, add(offset, count))]).reshape(sizes)
    places = build.dim_value(flat.builder, offset).reshape([1] * len(sizes))
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        own = build.arange(flat.builder, size) * build.dim_value(flat.builder, stride)
        places = places + own.reshape([size, *(1,) * (len(sizes) - 1 - axis)])
    return build.take(flat, places.reshape([count]), 0).reshape(sizes)


OPERATORS: dict[str, Operator] = {"aten.as_strided.default": _as_strided, "aten.as_strided_copy.default": _as_strided}

"""`as_strided` views of contiguous row-major tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ... import build
from ...build import Tensor
from ...expr import Dim, add, mul, product, sub
from ..composed.placing import put
from .call import Call, Operator
from .exported import Ref, TensorType
from .sizes import is_dense


@dataclass(frozen=True, slots=True)
class _View:
    """A strided view of a flat tensor."""

    flat: Tensor
    sizes: Sequence[Dim]
    strides: Sequence[Dim]
    offset: Dim

    @property
    def count(self) -> Dim:
        return product(self.sizes)

    @property
    def is_dense(self) -> bool:
        return is_dense(self.sizes, self.strides)

    def places(self) -> Tensor:
        """The positions of the view's elements in the flat tensor: (count,), int64."""
        builder, rank = self.flat.builder, len(self.sizes)
        places = build.dim_value(builder, self.offset).reshape([1] * rank)
        for axis, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True)):
            own = build.arange(builder, size) * build.dim_value(builder, stride)
            places = places + own.reshape([size, *(1,) * (rank - 1 - axis)])
        return places.reshape([self.count])


def _view(call: Call) -> _View:
    """The view of the operation, which must be inside its tensor unless it is empty."""
    x, source = call.tensor(), call.operation.arguments.get("self")
    known = call.types.get(source.name) if isinstance(source, Ref) else None
    if not isinstance(known, TensorType) or not known.is_dense:
        call.fail("its tensor does not lie row by row without gaps: take .contiguous() of it before")
    sizes, strides, offset = call.dims("size"), call.dims("stride"), call.dim("storage_offset", 0)
    total = product(x.shape)
    last = add(offset, *(mul(sub(size, 1), stride) for size, stride in zip(sizes, strides, strict=True)))
    is_outside = any(x.builder.bounds(each)[0] < 0 for each in (offset, *strides, sub(total, add(last, 1))))
    if is_outside and not any(size == 0 for size in sizes):
        call.fail(f"it reaches from element {offset} to {last} of {total}, which may be outside of the tensor")
    return _View(x.reshape([total]), sizes, strides, offset)


def _as_strided(call: Call) -> Tensor:
    view = _view(call)
    flat, sizes = view.flat, view.sizes
    if any(size == 0 for size in sizes):
        return build.zeros(flat.builder, sizes, flat.dtype)
    if view.is_dense:
        return build.shrink(flat, [(view.offset, add(view.offset, view.count))]).reshape(sizes)
    return build.take(flat, view.places(), 0).reshape(sizes)


def _as_strided_scatter(call: Call) -> Tensor:
    """Replace the elements of a view."""
    view = _view(call)
    flat, sizes = view.flat, view.sizes
    if any(size == 0 for size in sizes):
        return call.tensor()
    source = call.tensor("src").cast(flat.dtype).expand(sizes).reshape([view.count])
    return put(flat, view.places(), source, 0).reshape(call.tensor().shape)


OPERATORS: dict[str, Operator] = {
    "aten.as_strided.default": _as_strided,
    "aten.as_strided_copy.default": _as_strided,
    "aten.as_strided_scatter.default": _as_strided_scatter,
}

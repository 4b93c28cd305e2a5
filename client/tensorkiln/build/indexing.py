"""Gather and scatter by computed position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..expr import product
from ..nodes import ScatterKind
from .comparison import equal
from .conversion import cast
from .element_type import DTypeLike
from .filled import arange
from .movement import expand, reshape, unsqueeze
from .operands import axis_of, need, require_tensor
from .shape import ShapeLike, wire

if TYPE_CHECKING:
    from .tensor import Tensor


def gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """`numpy.take_along_axis`: one index along `axis` for every element of the result, whose shape is the indices'.

    Every other dim of `x` is at least the indices'. An index that is negative or too large gives 0, or false.
    """
    require_tensor(x, "gather")
    require_tensor(indices, "gather")
    x.builder.own(indices)
    need(indices, "an index", integers=True)
    if len(indices.shape) != len(x.shape):
        raise x.builder.error(f"indices of rank {len(indices.shape)} do not fit a tensor of rank {len(x.shape)}")
    fields = {"src_var": x.var, "indices_var": indices.var, "axis": axis_of(x, axis)}
    return x.builder.append("gather", x.dtype, indices.shape, **fields)


def take(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """`numpy.take`: whole slices of `x` along `axis`, which the shape of the indices replaces; as in a table lookup.

    An index that is negative or too large gives zeros.
    """
    require_tensor(x, "take")
    require_tensor(indices, "take")
    x.builder.own(indices)
    axis = axis_of(x, axis)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    count = product(indices.shape)
    column = reshape(indices, (*(1 for _ in before), count, *(1 for _ in after)))
    return reshape(gather(x, expand(column, (*before, count, *after)), axis), (*before, *indices.shape, *after))


def scatter(
    indices: Tensor,
    updates: Tensor,
    axis: int,
    shape: ShapeLike | None = None,
    *,
    into: Tensor | None = None,
    reduction: str = "none",
) -> Tensor:
    """Zeros of `shape`, or a copy of `into`, with each update put at its index along `axis`, in row-major order.

    The reduction "none" replaces the element, so the last of equal indices wins; "add", "mul", "min" and "max" combine
    the element with the update. An index that is negative or too large drops its update.
    """
    require_tensor(indices, "scatter")
    require_tensor(updates, "scatter")
    builder = updates.builder
    builder.own(indices)
    need(indices, "an index", integers=True)
    if into is not None:
        require_tensor(into, "scatter")
        builder.own(into)
    wanted = shape if shape is not None or into is None else into.shape
    if wanted is None:
        raise builder.error("a scatter takes the shape of its result, or the tensor to put the updates into")
    dims = builder.shape(wanted)
    if reduction not in tuple(ScatterKind):
        raise builder.error(f"{reduction!r} is not a reduction of a scatter: give one of {', '.join(ScatterKind)}")
    if not len(indices.shape) == len(updates.shape) == len(dims):
        raise builder.error("the indices, the updates and the result of a scatter have one rank")
    fields: dict[str, Any] = {"indices_var": indices.var, "updates_var": updates.var, "axis": axis_of(updates, axis)}
    if into is not None:
        fields["init_var"] = into.var
    if reduction != ScatterKind.NONE:
        fields["reduction"] = reduction
    return builder.append("scatter", updates.dtype, dims, **fields, shape=wire(dims))


def one_hot(indices: Tensor, depth: int, dtype: DTypeLike = DType.FLOAT32) -> Tensor:
    """1 where a new last axis of size `depth` counts to the index, else 0; zeros for an index out of range."""
    need(indices, "an index", integers=True)
    column = unsqueeze(cast(indices, DType.INT64), -1)
    return cast(equal(column, arange(indices.builder, depth, DType.INT64)), dtype)

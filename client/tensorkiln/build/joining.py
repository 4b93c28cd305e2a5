"""Concatenation, stacking and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..expr import Dim, add, sub
from .mistakes import OperandError
from .movement import shrink, unsqueeze
from .operands import adopt, axis_of, require_tensor

if TYPE_CHECKING:
    from .tensor import Tensor


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis; their other dims are equal."""
    from .tensor import Tensor

    if isinstance(tensors, Tensor):
        raise OperandError("cat takes a list of tensors, as in cat([x, y], axis)")
    if not tensors:
        raise OperandError("cat takes at least one tensor")
    first = tensors[0]
    axis = axis_of(first, axis)
    for tensor in tensors[1:]:
        adopt(tensor, first)
        if len(tensor.shape) != len(first.shape):
            raise first.builder.error(f"tensors of rank {len(first.shape)} and {len(tensor.shape)} do not join")
        _same_but(first, tensor, axis)
    if len(tensors) == 1:
        return first
    joined: list[Dim] = list(first.shape)
    joined[axis] = add(*(tensor.shape[axis] for tensor in tensors))
    return first.builder.append("cat", first.dtype, joined, in_vars=[tensor.var for tensor in tensors], axis=axis)


def _same_but(first: Tensor, other: Tensor, axis: int) -> None:
    for place, (left, right) in enumerate(zip(first.shape, other.shape, strict=True)):
        low, high = first.builder.bounds(sub(left, right))
        if place != axis and (low > 0 or high < 0):
            raise first.builder.error(
                f"the dimensions {left} and {right} of axis {place} differ, and parts are joined along axis {axis} only"
            )


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors along a new axis; all have one shape."""
    return cat([unsqueeze(tensor, axis) for tensor in tensors], axis)


def split(x: Tensor, sizes: Sequence[Dim], axis: int = 0) -> tuple[Tensor, ...]:
    """`x` cut along an axis into parts of the given sizes, which add up to the dim."""
    require_tensor(x, "split")
    axis = axis_of(x, axis)
    if add(*sizes) != x.shape[axis]:
        raise x.builder.error(f"the sizes add up to {add(*sizes)}, the dimension is {x.shape[axis]}")
    parts: list[Tensor] = []
    begin: Dim = 0
    for size in sizes:
        limits: list[tuple[Dim, Dim]] = [(0, dim) for dim in x.shape]
        limits[axis] = (begin, begin + size)
        parts.append(shrink(x, limits))
        begin = begin + size
    return tuple(parts)

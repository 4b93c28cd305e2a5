"""Broadcasting spelled out: a tensor that meets a larger shape is reshaped and expanded; rank 0 stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..expr import Dim
from .movement import expand, reshape

if TYPE_CHECKING:
    from .builder import Builder
    from .tensor import Tensor


def broadcast_shape(builder: Builder, shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The shape that NumPy's rules give, aligned from the right.

    Only a static 1 broadcasts. Two dims that differ as expressions but may be equal count as equal, and the call checks
    it; InvalidGraphError when they cannot be equal under the symbols' bounds.
    """
    given = [shape for shape in shapes if shape]
    if not given or given.count(given[0]) == len(given):
        return tuple(given[0]) if given else ()
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for position, dim in enumerate(shape, start=rank - len(shape)):
            result[position] = _joined(builder, result[position], dim)
    return tuple(result)


def _joined(builder: Builder, left: Dim, right: Dim) -> Dim:
    if left == 1:
        return right
    if right == 1 or left == right:
        return left
    low, high = builder.bounds(left)
    other_low, other_high = builder.bounds(right)
    if high < other_low or other_high < low:
        raise builder.error(f"the dimensions {left} and {right} do not broadcast together")
    return left


def stretch(x: Tensor, shape: Sequence[Dim]) -> Tensor:
    """`x` aligned to `shape` from the right, its dims of 1 expanded; its other dims stay as they are written."""
    missing = len(shape) - len(x.shape)
    aligned = (1,) * missing + x.shape
    target = tuple(wanted if own == 1 else own for own, wanted in zip(aligned, shape, strict=True))
    return expand(reshape(x, aligned), target)


def broadcast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors with one shape; those of rank 0 stay rank 0, which every elementwise node takes."""
    shape = broadcast_shape(tensors[0].builder, [tensor.shape for tensor in tensors])
    return tuple(stretch(each, shape) if each.shape and each.shape != shape else each for each in tensors)

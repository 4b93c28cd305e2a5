"""Gradients of padding: elements at an edge get those of their copies. torch decomposes those of other paddings."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, sub
from .call import Call, Operator


def _replicated(call: Call) -> Tensor:
    """The gradient of the tensor whose last axes were padded; negative widths have cropped it."""
    gradient, own = call.tensor("grad_output"), call.tensor("self").shape
    found = gradient.cast(DType.FLOAT32) if gradient.dtype.is_half else gradient
    widths = call.integers("padding")
    for place in range(len(widths) // 2):
        axis, before, after = found.rank - 1 - place, widths[2 * place], widths[2 * place + 1]
        if found.builder.bounds(own[axis])[0] <= max(-before, -after):
            call.fail(f"{own[axis]} elements of axis {axis} may be too few to remove {-before} and {-after} of them")
        found = _gathered(found, axis, own[axis], before, after)
    return found.cast(gradient.dtype)


def _gathered(x: Tensor, axis: int, own: Dim, before: int, after: int) -> Tensor:
    """The gradient along an axis of `own` elements, of which the first and the last have copies."""
    first, end = max(before, 0), sub(x.shape[axis], max(after, 0))
    found = _at(_part(x, axis, first, end), axis, max(-before, 0), max(-after, 0))
    if before > 0:
        found = found + _at(_part(x, axis, 0, first).sum([axis], keepdims=True), axis, 0, sub(own, 1))
    if after > 0:
        found = found + _at(_part(x, axis, end, x.shape[axis]).sum([axis], keepdims=True), axis, sub(own, 1), 0)
    return found


def _part(x: Tensor, axis: int, begin: Dim, end: Dim) -> Tensor:
    return x[tuple(slice(begin, end) if each == axis else slice(None) for each in range(x.rank))]


def _at(x: Tensor, axis: int, before: Dim, after: Dim) -> Tensor:
    """Zeros around the elements along an axis."""
    return build.pad(x, [(before, after) if each == axis else (0, 0) for each in range(x.rank)])


OPERATORS: dict[str, Operator] = {
    "aten.replication_pad1d_backward.default": _replicated,
    "aten.replication_pad2d_backward.default": _replicated,
    "aten.replication_pad3d_backward.default": _replicated,
}

"""Gradients of padding: elements at an edge get those of their copies. torch decomposes those of other paddings."""

from __future__ import annotations

from ...build import Tensor
from ...build.conversion import widened
from ...expr import Dim, sub
from ..composed.spreading import between, padded
from .call import Call, Operator
from .movement import edge_widths


def _replicated(call: Call) -> Tensor:
    """The gradient of the tensor whose last axes were padded; negative widths have cropped it."""
    gradient, own = call.tensor("grad_output"), call.tensor("self").shape
    found = widened(gradient)
    for axis, before, after in edge_widths(call.integers("padding"), found.rank):
        if found.builder.bounds(own[axis])[0] <= max(-before, -after):
            call.fail(f"{own[axis]} elements of axis {axis} may be too few to remove {-before} and {-after} of them")
        found = _gathered(found, axis, own[axis], before, after)
    return found.cast(gradient.dtype)


def _gathered(x: Tensor, axis: int, own: Dim, before: int, after: int) -> Tensor:
    """The gradient along an axis of `own` elements, of which the first and the last have copies."""
    size, last = x.shape[axis], sub(own, 1)
    found = _at(x, axis, -before, -after)
    if before > 0:
        found = found + _at(between(x, axis, 0, before).sum([axis], keepdims=True), axis, 0, last)
    if after > 0:
        found = found + _at(between(x, axis, sub(size, after), size).sum([axis], keepdims=True), axis, last, 0)
    return found


def _at(x: Tensor, axis: int, before: Dim, after: Dim) -> Tensor:
    """Zeros around the elements along an axis; a negative width crops."""
    return padded(x, [(before, after) if each == axis else (0, 0) for each in range(x.rank)])


OPERATORS: dict[str, Operator] = {
    "aten.replication_pad1d_backward.default": _replicated,
    "aten.replication_pad2d_backward.default": _replicated,
    "aten.replication_pad3d_backward.default": _replicated,
}

"""Shape trackers: stacked strided views, each with an optional mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..errors import CallInputError
from ..nodes import Valid, View, ViewSpec
from .precision import Array
from .scope import Evaluator, Scope


def addresses(views: Sequence[ViewSpec], scope: Scope) -> tuple[Array, Array]:
    """For every element of the last view: its flat address in the source, and whether all masks hold.

    The rule of tinygrad v0.11's `views_to_indexed_uops`: the last view defines the shape; the address that a view
    computes is split, row-major, over the shape of the view below it. An address under a false mask means nothing.
    """
    shape = scope.dims(views[-1].shape)
    index = tuple(np.indices(shape, dtype=np.int64))
    flat, valid = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    for depth, view in enumerate(reversed(views)):
        if depth > 0:
            index = _unravelled(flat, scope.dims(view.shape))
        flat = np.full(shape, scope.dim(view.offset), np.int64)
        for position, stride in zip(index, scope.dims(view.strides), strict=True):
            flat = flat + position * stride
        for position, (begin, end) in zip(index, view.mask or (), strict=bool(view.mask)):
            valid = valid & (scope.dim(begin) <= position) & (position < scope.dim(end))
    return flat, valid


def _unravelled(flat: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    index: list[Array] = []
    below = 1
    for extent in reversed(shape):
        # An empty view below has no valid element: the divisor only has to be harmless.
        index.insert(0, (flat // max(below, 1)) % max(extent, 1))
        below *= extent
    return tuple(index)


def evaluate_view(node: View, scope: Scope) -> Array:
    """Each element is read at its address where it is valid, and is 0 elsewhere.

    CallInputError for an unmasked address outside the source.
    """
    source = scope.read(node.in_var).ravel()
    flat, valid = addresses(node.shape_tracker.views, scope)
    outside = valid & ((flat < 0) | (flat >= source.size))
    if outside.any():
        raise CallInputError(
            f"the view reads element {flat[outside][0]} of a tensor of {source.size}; mask it, or change the symbols",
            pointers=[scope.pointer],
        )
    result = np.zeros(flat.shape, source.dtype)
    result[valid] = source[flat[valid]]
    return result


def evaluate_valid(node: Valid, scope: Scope) -> Array:
    """Of a scalar bool or of unit: the mask itself; of a tensor: the tensor where the mask holds, else 0."""
    x = scope.read(node.in_var)
    _, valid = addresses(node.shape_tracker.views, scope)
    if scope.dtype(node.in_var) is DType.UNIT or (scope.dtype(node.in_var) is DType.BOOL and x.ndim == 0):
        return valid
    result = np.zeros(valid.shape, x.dtype)
    result[valid] = x[valid]
    return result


EVALUATORS: dict[type, Evaluator] = {View: evaluate_view, Valid: evaluate_valid}

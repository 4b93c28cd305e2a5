"""View and valid: shape trackers, and the addresses that they reach.

Over a box of indices an affine address has its extremes at corners, so a single view is checked exactly, symbolically
if necessary. In a chain of views, an inner view is first checked over its whole box; only if that fails, the addresses
that the outer views actually form are enumerated.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from ..dtypes import DType
from ..expr import Dim, add, maximum, minimum, mul, sub
from ..nodes import ShapeTracker, Valid, View, ViewSpec
from ..types import TensorType
from .legality import STORED
from .movement import operand
from .scope import Scope, Shape, shape_text

MAX_ENUMERATED: Final = 1 << 20
"""The most elements of a chain of views whose addresses are enumerated in validation: some 0.1 s and 100 MB."""

MAX_ENUMERATED_ADDRESS: Final = 1 << 62
"""Addresses below this cannot overflow while they are summed in 64 bits."""

Box = list[tuple[Dim, Dim]]


def check_tracker(scope: Scope, tracker: ShapeTracker) -> None:
    """Refuses a shape tracker whose parts do not fit together."""
    if not tracker.views:
        scope.fail("a shape tracker has at least one view", "shape_tracker/views")
    for number, view in enumerate(tracker.views):
        field, rank = f"shape_tracker/views/{number}", len(view.shape)
        if len(view.strides) != rank:
            scope.fail(f"the view has {len(view.strides)} strides for {rank} axes", f"{field}/strides")
        if view.mask is not None and len(view.mask) != rank:
            scope.fail(f"the view has a mask of {len(view.mask)} pairs for {rank} axes", f"{field}/mask")
        scope.type(DType.BOOL, view.shape)
        for dim in (view.offset, *view.strides, *(edge for pair in view.mask or () for edge in pair)):
            scope.bounds(dim)
    last = tracker.views[-1].shape
    scope.require_same_shape(tracker.shape, last, "the shape of the tracker is that of its last view", "shape_tracker")


def check_addresses(scope: Scope, tracker: ShapeTracker, size: Dim | None) -> None:
    """Refuses a tracker that can address an element outside of the next view, or outside of `size` elements of storage.

    With `size` None nothing is loaded, so the addresses of the base-most view do not matter.
    """
    for number, view in reversed(tuple(enumerate(tracker.views))):
        limit = mul(*tracker.views[number - 1].shape) if number else size
        if limit is None:
            continue
        if number < len(tracker.views) - 1 and not _is_inside_box(scope, view, limit):
            _check_reached(scope, tracker, number, limit)
        else:
            _require_inside(scope, view, limit, f"shape_tracker/views/{number}")


def _box(scope: Scope, view: ViewSpec) -> Box:
    """First and last unmasked index of each axis; the last is before the first if all are masked."""
    if view.mask is None:
        return [(0, add(size, -1)) for size in view.shape]
    box: Box = []
    for size, (begin, end) in zip(view.shape, view.mask, strict=True):
        box.append((_greater(scope, begin, 0), add(_smaller(scope, size, end), -1)))
    return box


def _smaller(scope: Scope, left: Dim, right: Dim) -> Dim:
    """The minimum of two dims; one of the two if provable, so that differences to it can still be proven."""
    low, high = scope.bounds(sub(left, right))
    if high <= 0:
        return left
    return right if low >= 0 else minimum(left, right)


def _greater(scope: Scope, left: Dim, right: Dim) -> Dim:
    """The maximum of two dims; one of the two if provable."""
    low, high = scope.bounds(sub(left, right))
    if low >= 0:
        return left
    return right if high <= 0 else maximum(left, right)


def _extremes(scope: Scope, view: ViewSpec) -> tuple[Dim, Dim]:
    """The least and the greatest address of the box, provided that it is not empty."""
    least: Dim = view.offset
    greatest: Dim = view.offset
    for stride, (first, last) in zip(view.strides, _box(scope, view), strict=True):
        low, high = scope.bounds(stride)
        near, far = mul(stride, first), mul(stride, last)
        if high <= 0:
            near, far = far, near
        elif low < 0:
            near, far = _smaller(scope, near, far), _greater(scope, near, far)
        least, greatest = add(least, near), add(greatest, far)
    return least, greatest


def _is_inside_box(scope: Scope, view: ViewSpec, limit: Dim) -> bool:
    """Whether every address of the box is provably in `0 .. limit - 1`, or the box provably empty."""
    if any(scope.bounds(sub(last, first))[1] < 0 for first, last in _box(scope, view)):
        return True
    least, greatest = _extremes(scope, view)
    return scope.bounds(least)[0] >= 0 and scope.bounds(sub(limit, greatest))[0] >= 1


def _require_inside(scope: Scope, view: ViewSpec, limit: Dim, field: str) -> None:
    if _is_inside_box(scope, view, limit):
        return
    least, greatest = _extremes(scope, view)
    below, above = least, add(sub(limit, greatest), -1)
    extents = [add(sub(last, first), 1) for first, last in _box(scope, view)]
    if any(scope.bounds(extent)[0] < 1 for extent in extents):
        is_addressed = maximum(0, minimum(1, *extents))
        below, above = mul(is_addressed, below), mul(is_addressed, above)
    scope.require_ge(below, 0, "an address of the view is before the first element", field)
    scope.require_ge(above, 0, "an address of the view is after the last element", field)


def _check_reached(scope: Scope, tracker: ShapeTracker, number: int, limit: Dim) -> None:
    """Check view `number` by enumerating the addresses that its outer views form."""
    outer, field = tracker.views[number:], f"shape_tracker/views/{number}"
    if not isinstance(limit, int) or not all(_is_enumerable(view) for view in outer) or _count(outer) > MAX_ENUMERATED:
        scope.unsupported("cannot prove that the addresses of this inner view stay inside; use one view", field)
    addresses = reached(outer)
    if addresses.size and (addresses.min() < 0 or addresses.max() >= limit):
        scope.fail(f"the view addresses {addresses.min()} .. {addresses.max()} of {limit} elements", field)


def _count(views: tuple[ViewSpec, ...]) -> int:
    return prod(_static(views[-1].shape))


def _is_enumerable(view: ViewSpec) -> bool:
    """Whether a view is static and no sum of its address can overflow."""
    dims = (view.offset, *view.shape, *view.strides, *(edge for pair in view.mask or () for edge in pair))
    if not all(isinstance(dim, int) for dim in dims):
        return False
    reach = sum(abs(stride) * size for stride, size in zip(_static(view.strides), _static(view.shape), strict=True))
    return reach + abs(_static((view.offset,))[0]) < MAX_ENUMERATED_ADDRESS


def reached(views: tuple[ViewSpec, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The unmasked addresses that a static chain of views forms in the storage under `views[0]`."""
    flat = np.arange(_count(views), dtype=np.int64)
    for view in reversed(views):
        shape = _static(view.shape)
        indices = np.unravel_index(flat, shape) if shape and flat.size else ()
        flat = np.full(flat.shape, _static((view.offset,))[0], np.int64)
        valid = np.ones(flat.shape, np.bool_)
        mask = [_static(pair) for pair in view.mask] if view.mask is not None else [(0, size) for size in shape]
        for index, stride, (begin, end) in zip(indices, _static(view.strides), mask, strict=False):
            flat += index * stride
            valid &= (index >= begin) & (index < end)
        flat = flat[valid]
    return flat


def _static(dims: tuple[Dim, ...]) -> tuple[int, ...]:
    return tuple(dim for dim in dims if isinstance(dim, int))


def view(node: View, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    check_tracker(scope, node.shape_tracker)
    check_addresses(scope, node.shape_tracker, mul(*source.shape))
    return scope.type(source.dtype, node.shape_tracker.shape)


def valid(node: Valid, scope: Scope) -> TensorType:
    source, shape = scope.types[node.in_var], node.shape_tracker.shape
    check_tracker(scope, node.shape_tracker)
    check_addresses(scope, node.shape_tracker, None)
    is_bare = source.dtype not in STORED or (source.dtype is DType.BOOL and source.rank == 0)
    if is_bare and node.dtype is DType.BOOL:
        return scope.type(DType.BOOL, shape)
    scope.require_dtype(node.dtype, source.dtype)
    operand(scope, node.in_var)
    _require_input_shape(scope, source.shape, shape)
    return scope.type(source.dtype, shape)


def _require_input_shape(scope: Scope, source: Shape, shape: Shape) -> None:
    message = f"valid masks a value of the tracker's shape {shape_text(shape)}"
    scope.require_same_shape(source, shape, message, "in_var")


RULES = {View: view, Valid: valid}

"""Updates put at computed positions along an axis, or combined with what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from .. import build
from ..build import Tensor
from ..dtypes import DType
from ..expr import Dim, product

MAX_PAIRS: Final = 1 << 26
"""Of updates that are combined: pairs of a position and an update along an axis."""


def put(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """`x` with the updates put at their indices along `axis`, in the first elements of the other axes.

    Of equal indices the last wins; one that is negative or too large drops its update.
    """
    shape = [*updates.shape[:axis], x.shape[axis], *updates.shape[axis + 1 :]]
    given = build.scatter(indices, updates, axis, shape)
    hit = build.scatter(indices, build.ones(x.builder, updates.shape, DType.BOOL), axis, shape)
    return build.where(_padded(hit, x.shape), _padded(given, x.shape), x)


def combine(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int, how: str, refuse: Callable[[str], NoReturn]
) -> Tensor:
    """As `put`, but each update combined with what is there: `how` is add, mul, max or min.

    Every position looks at all updates, so that none is lost where several have the same index.
    """
    pairs = product([x.shape[axis], *updates.shape])
    if x.builder.bounds(pairs)[1] > MAX_PAIRS:
        refuse(f"updates are combined by a table of {pairs} pairs, which may be more than {MAX_PAIRS}")
    moved, places = (build.moveaxis(each, axis, -1).unsqueeze([-2]) for each in (updates, indices))
    positions = build.arange(x.builder, x.shape[axis], indices.dtype).unsqueeze([1])
    hits = build.equal(places, positions)
    own: list[Dim] = [*x.shape]
    if how in ("add", "mul"):
        table = build.where(hits, moved, 0 if how == "add" else 1)
        total = table.sum([-1], dtype=x.dtype) if how == "add" else table.prod([-1], dtype=x.dtype)
        other = _padded(build.moveaxis(total, -1, axis), own, 0 if how == "add" else 1)
        return x + other if how == "add" else x * other
    lowest, highest = (float("-inf"), float("inf")) if x.dtype.is_float else (x.dtype.min, x.dtype.max)
    table = build.where(hits, moved, lowest if how == "max" else highest)
    found = table.max([-1]) if how == "max" else table.min([-1])
    is_hit = _padded(build.moveaxis(hits.any(-1), -1, axis), own)
    value = _padded(build.moveaxis(found, -1, axis), own)
    return build.where(is_hit, build.maximum(x, value) if how == "max" else build.minimum(x, value), x)


def _padded(x: Tensor, shape: Sequence[Dim], fill: int = 0) -> Tensor:
    """Up to `shape`, behind the elements."""
    if tuple(x.shape) == tuple(shape):
        return x
    return build.pad(x, [(0, whole - own) for whole, own in zip(shape, x.shape, strict=True)], fill)

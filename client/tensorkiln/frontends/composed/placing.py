"""Scatter with reductions, and flattening of multi-axis indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim, product
from .refusal import Refusal, unsupported

REDUCTIONS: Final = ("none", "add", "mul", "max", "min")
MAX_PAIRS: Final = 1 << 26
"""The most pairs of a position and an update that a combined scatter compares."""


def wrapped(indices: Tensor, extent: Dim) -> Tensor:
    """Indices with negative ones, which count from the end, made non-negative."""
    size = build.dim_value(indices.builder, extent, indices.dtype)
    return build.where(indices < 0, indices + size, indices)


def put(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int, how: str = "none", *, refuse: Refusal = unsupported
) -> Tensor:
    """Scatter updates into `x` at their indices along `axis`, from the first elements of the other axes on.

    `how`, one of `REDUCTIONS`, combines updates with the old elements; "none" replaces these, the last of equal indices
    wins. An index out of range drops its update. `refuse` is called for more than `MAX_PAIRS` pairs.
    """
    if how == "none":
        shape = [*updates.shape[:axis], x.shape[axis], *updates.shape[axis + 1 :]]
        put = build.scatter(indices, updates, axis, shape)
        hit = build.scatter(indices, build.ones(x.builder, updates.shape, DType.BOOL), axis, shape)
        return build.where(_padded(hit, x.shape), _padded(put, x.shape), x)
    return _combined(x, indices, updates, axis, how, refuse)


def _combined(x: Tensor, indices: Tensor, updates: Tensor, axis: int, how: str, refuse: Refusal) -> Tensor:
    """Compare every position with every update, so that updates of equal indices are all combined."""
    pairs = product([x.shape[axis], *updates.shape])
    if x.builder.bounds(pairs)[1] > MAX_PAIRS:
        refuse(f"updates are combined by a table of {pairs} pairs, which may be more than {MAX_PAIRS}")
    # In int64, which covers every extent; an unsigned index too large for it becomes negative, so out of range.
    wide = indices.cast(DType.INT64)
    moved, places = (build.moveaxis(each, axis, -1).unsqueeze([-2]) for each in (updates, wide))
    positions = build.arange(x.builder, x.shape[axis]).unsqueeze([1])
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
    """Pad at the ends to `shape`."""
    if tuple(x.shape) == tuple(shape):
        return x
    return build.pad(x, [(0, whole - own) for whole, own in zip(shape, x.shape, strict=True)], fill)


def flat_indices(indices: Tensor, dims: Sequence[Dim]) -> Tensor:
    """Convert index tuples, along the last axis, to positions in the flattened `dims`; -1 out of range."""
    total = build.zeros(indices.builder, indices.shape[:-1], DType.INT64)
    for place, dim in enumerate(dims):
        size = build.dim_value(indices.builder, dim)
        own = wrapped(indices[..., place].cast(DType.INT64), dim)
        # An index out of range on one axis must not wrap to another row.
        inside = (own >= 0) & (own < size)
        total = build.where(inside & (total >= 0), total * size + own, -1)
    return total

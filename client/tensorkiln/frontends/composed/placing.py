"""Scatter into a tensor, and flattening of multi-axis indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from ...nodes import ScatterKind

REDUCTIONS: Final = tuple(kind.value for kind in ScatterKind)


def wrapped(indices: Tensor, extent: Dim) -> Tensor:
    """Indices with negative ones, which count from the end, made non-negative."""
    size = build.dim_value(indices.builder, extent, indices.dtype)
    return build.where(indices < 0, indices + size, indices)


def put(x: Tensor, indices: Tensor, updates: Tensor, axis: int, how: str = "none") -> Tensor:
    """Scatter updates into `x` at their indices along `axis`, from the first elements of the other axes on.

    `how`, one of `REDUCTIONS`, combines updates with the old elements in row-major order; "none" replaces these, the
    last of equal indices wins. An index out of range drops its update.
    """
    return build.scatter(indices, updates, axis, into=x, reduction=how)


def identity(how: str, dtype: DType) -> float:
    """The element that changes no update: 0 for "add", 1 for "mul", the greatest for "min", the least for "max"."""
    if how in ("add", "mul"):
        return int(how == "mul")
    return dtype.min if how == "max" else dtype.max


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

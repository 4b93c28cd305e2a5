"""Elements in order, by how many of them come before each."""

from __future__ import annotations

from collections.abc import Sequence

from .. import build
from ..build import Tensor
from ..dtypes import DType
from ..expr import Dim


def ranks(is_before: Tensor, is_same: Tensor) -> Tensor:
    """The place of each element in a stable order, int64: (…, n) for two tables (…, n, n).

    Entry [i, j] says whether element j comes before element i, or is the same in the order.
    """
    places = build.arange(is_before.builder, is_before.shape[-1])
    before = is_before | (is_same & (places < places.unsqueeze([1])))
    return before.cast(DType.INT64).sum([-1])


def in_order(rank: Tensor, values: Tensor, count: Dim) -> Tensor:
    """The first `count` values of the last axis, in the order of their ranks; both are (…, n)."""
    shape: Sequence[Dim] = [*values.shape[:-1], count]
    # Ranks from `count` on lie outside of the result, and are dropped.
    return build.scatter(rank, values, values.rank - 1, shape)

"""Legality rules that several ops share: each returns a problem, or None."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln.expr import Dim, product
from tensorkiln.types import TensorType


def same_type(source: TensorType, result: TensorType) -> str | None:
    """Equal dtype and shape."""
    return same_dtype(source, result) or same_shape(source.shape, result.shape)


def same_dtype(*tensors: TensorType) -> str | None:
    dtypes = list(dict.fromkeys(tensor.dtype.value for tensor in tensors))
    return f"the dtypes differ: {', '.join(dtypes)}" if len(dtypes) > 1 else None


def same_shape(left: Sequence[Dim], right: Sequence[Dim]) -> str | None:
    """Equal static dims; symbolic dims may be equal only at a call."""
    if len(left) == len(right) and all(_may_be_equal(*pair) for pair in zip(left, right, strict=True)):
        return None
    return f"the shapes differ: {shape_text(left)} and {shape_text(right)}"


def _may_be_equal(left: Dim, right: Dim) -> bool:
    return left == right or not (isinstance(left, int) and isinstance(right, int))


def same_count(left: TensorType, right: TensorType) -> str | None:
    """An equal number of elements, if both are static."""
    counts = product(left.shape), product(right.shape)
    if all(isinstance(count, int) for count in counts) and counts[0] != counts[1]:
        return f"the numbers of elements differ: {counts[0]} and {counts[1]}"
    return None


def has_rank(tensor: TensorType, rank: int, what: str) -> str | None:
    return None if tensor.rank == rank else f"{what} has rank {tensor.rank}, not {rank}"


def scalars_or_rank(tensors: Sequence[TensorType], result: TensorType) -> str | None:
    """Each operand is a scalar or has the rank of the result, which is the highest of theirs."""
    ranks = [tensor.rank for tensor in tensors]
    if result.rank != max(ranks) or not {*ranks} <= {0, result.rank}:
        return f"operands of the ranks {ranks} do not give a result of rank {result.rank}"
    return None


def distinct_axes(axes: Sequence[int], rank: int, what: str) -> str | None:
    if len({*axes}) == len(axes) and all(0 <= axis < rank for axis in axes):
        return None
    return f"{what} {list(axes)} are not distinct axes of {rank}"


def one_per_axis(entries: Sequence[object], rank: int, what: str) -> str | None:
    return None if len(entries) == rank else f"{what} has {len(entries)} entries for {rank} axes"


def shape_text(shape: Sequence[Dim]) -> str:
    return f"({', '.join(str(dim) for dim in shape)})"

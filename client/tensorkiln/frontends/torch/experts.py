"""Mixtures of experts: tokens counted by expert, and products of sorted rows with the weights of their expert."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from .call import Call, Operator

MAX_BINS = 1 << 12
"""The most bins of a histogram: every element is compared with every bin."""


def _histogram(call: Call) -> Tensor:
    """The number of elements in each bin; the last bin contains its upper edge. Other elements are not counted."""
    x, bins = call.tensor(), call.integer("bins", 100)
    low, high = call.number("min", 0), call.number("max", 0)
    if not low < high:
        call.fail(f"the limits of the bins are {low} and {high}, and depend on the data")
    if not 1 <= bins <= MAX_BINS:
        call.fail(f"{bins} bins are too few or too many; 1 to {MAX_BINS} are supported")
    flat = x.reshape(-1).unsqueeze([1])
    wide = flat.cast(DType.FLOAT32) if flat.dtype.is_half or not flat.dtype.is_float else flat
    places = ((wide - low) * float(bins) / (high - low)).floor()
    last = build.where(build.equal(wide, high), float(bins - 1), build.minimum(places, float(bins - 1)))
    is_inside = (wide >= low) & (wide <= high)
    columns = build.arange(call.builder, bins, wide.dtype)
    return (build.equal(last, columns) & is_inside).sum([0], dtype=DType.INT64).cast(call.dtype)


def _fallback(call: Call) -> Tensor:
    return _grouped(call, call.tensor("input"), call.tensor("weight"), call.tensor("offs"))


def _grouped_product(call: Call) -> Tensor:
    """Rows in groups, each by its own matrix; or, without `offs`, batches of matrices."""
    x, weight = call.tensor(), call.tensor("mat2")
    if call.has("offs"):
        found = _grouped(call, x, weight, call.tensor("offs"))
    elif x.rank == weight.rank == 3:
        found = build.matmul(x, weight)
    else:
        call.fail(f"operands of rank {x.rank} and {weight.rank} without `offs` are not supported")
    bias = call.optional("bias")
    return (found if bias is None else found + bias).cast(call.dtype)


def _grouped(call: Call, x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Multiply each row of `x`, (rows, k), by the matrix of its group in `weight`, (groups, k, n).

    Group i has the rows from `ends[i - 1]` to `ends[i]`. Rows behind the last group are zeros.
    """
    if x.rank != 2 or weight.rank != 3 or ends.rank != 1:
        call.fail(f"operands of rank {x.rank} and {weight.rank} with `offs` are not supported; ranks 2 and 3 are")
    rows, groups = x.shape[0], weight.shape[0]
    places = build.arange(call.builder, rows).unsqueeze([1])
    group = (ends.cast(DType.INT64) <= places).sum([1], dtype=DType.INT64)
    if _is_fewer(rows, groups):
        # Reading one matrix for each row is less than multiplying each row by all matrices.
        return build.einsum("sk,skn->sn", x, build.take(weight, group))
    products = build.einsum("sk,ekn->sen", x, weight)
    own = build.equal(group.unsqueeze([1]), build.arange(call.builder, groups)).unsqueeze([2])
    return build.where(own, products, 0.0).sum([1], dtype=products.dtype)


def _is_fewer(rows: Dim, groups: Dim) -> bool:
    return isinstance(rows, int) and isinstance(groups, int) and rows < groups


OPERATORS: dict[str, Operator] = {
    "aten._grouped_mm.default": _grouped_product,
    "aten.histc.default": _histogram,
    "transformers.grouped_mm_fallback.default": _fallback,
}

"""Embedding bags: rows of a table reduced per bag, where each bag begins at an offset."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import product
from .call import Call, Operator

SUM, MEAN, MAX = range(3)
MAX_PAIRS = 1 << 30
"""The most pairs of a bag and an element of a row."""


def _embedding_bag(call: Call) -> list[Tensor]:
    """The first result only: the sum, mean or maximum of the rows of each bag; an empty bag gives zeros."""
    weight, indices, offsets = (call.tensor(name) for name in ("weight", "indices", "offsets"))
    bags, mode, padding = call.result_shape()[0], call.integer("mode", SUM), call.integer("padding_idx", -1)
    count, pairs = indices.shape[0], product([bags, indices.shape[0], weight.shape[1]])
    if weight.builder.bounds(pairs)[1] > MAX_PAIRS:
        call.fail(f"{pairs} pairs of a bag and an element may be more than the {MAX_PAIRS} that are combined")
    begins = offsets.cast(DType.INT64)
    places, number = build.arange(weight.builder, count), build.dim_value(weight.builder, count)
    if call.flag("include_last_offset"):
        ends, begins = begins[1:], begins[:-1]
    else:
        ends = build.cat([begins[1:], number.reshape([1])])
    inside = (places >= begins.unsqueeze(1)) & (places < ends.unsqueeze(1))
    if padding >= 0:
        inside = inside & build.not_equal(indices, padding)
    rows = build.take(weight, indices, 0)
    scale = call.optional("per_sample_weights")
    if scale is not None:
        rows = rows * scale.unsqueeze(1)
    is_in = inside.unsqueeze(2)
    if mode == MAX:
        most = build.where(is_in, rows, float("-inf")).max([1])
        return [build.where(inside.any([1]).unsqueeze(1), most, 0.0)]
    total = build.where(is_in, rows, 0.0).sum([1], dtype=rows.dtype)
    if mode == SUM:
        return [total]
    sizes = build.maximum(inside.cast(DType.INT64).sum([1]), 1).cast(total.dtype)
    return [total / sizes.unsqueeze(1)]


OPERATORS: dict[str, Operator] = {
    "aten._embedding_bag.default": _embedding_bag,
    "aten._embedding_bag_forward_only.default": _embedding_bag,
}

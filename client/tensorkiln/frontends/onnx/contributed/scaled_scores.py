"""The middle of an attention: masks of scores, their softmax, and the weighted sum of values."""

from __future__ import annotations

import math

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ....expr import Dim
from ..node import Node

LOWEST = -3.4028234663852886e38
"""The least float32, which stands for a score that takes no part."""


def features_of(node: Node, x: Tensor) -> int:
    """The size of the last axis, which must be known."""
    count = x.shape[-1]
    if not isinstance(count, int):
        node.fail(f"the number of features, {count}, depends on symbols; fix these by `symbols`")
    return count


def scale_of(node: Node, query: Tensor) -> float:
    """The factor of the scores: the attribute, or by default one over the root of the number of features."""
    return node.number("scale", 0.0) or 1 / math.sqrt(features_of(node, query))


def heads_of(x: Tensor, count: int) -> Tensor:
    """(batch, tokens, count * features) as (batch, count, tokens, features)."""
    if not isinstance(x.shape[-1], int) or count < 1 or x.shape[-1] % count:
        raise ValueError(f"{x.shape[-1]} features are not split among {count} heads")
    return x.reshape(x.shape[0], x.shape[1], count, x.shape[-1] // count).permute(0, 2, 1, 3)


def joined(x: Tensor) -> Tensor:
    """(batch, heads, tokens, features) as (batch, tokens, heads * features)."""
    batch, count, tokens, features = x.shape
    return x.permute(0, 2, 1, 3).reshape(batch, tokens, count * features)


def causal(node: Node, tokens: Dim, total: Dim) -> Tensor:
    """Whether a key, of `total`, lies at or before the token of a row; the rows are the last `tokens` positions."""
    rows, columns = build.arange(node.builder, tokens), build.arange(node.builder, total)
    return columns <= rows.unsqueeze([1]) + build.dim_value(node.builder, total - tokens)


def weighted(
    query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None, allowed: Tensor | None
) -> Tensor:
    """`softmax(query @ key.T * scale + bias) @ value` with scores in float32, and without those not `allowed`.

    All are of shape (batch, heads, tokens, features).
    """
    scores = (query @ key.transpose(-2, -1)).cast(DType.FLOAT32) * scale
    if bias is not None:
        scores = scores + bias.cast(DType.FLOAT32)
    if allowed is not None:
        scores = build.where(allowed, scores, LOWEST)
    return build.softmax(scores, -1).cast(value.dtype) @ value

"""Layers that torch computes by one fused operator when gradients are off."""

from __future__ import annotations

import math

from ... import build
from ...build import Tensor
from ...build.conversion import widened
from ...dtypes import DType
from .call import Call, Operator

_EVERY_HEAD = 2
"""The mask type (batch, heads, queries, keys); 0 is (queries, keys), 1 (batch, keys). Nonzero entries are masked."""


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return build.matmul(x, weight.transpose()) + bias


def _attention(call: Call, heads: int, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The result (batch, queries, width) and the weights (batch, heads, queries, keys)."""
    width = query.shape[-1]
    if not isinstance(width, int) or query.rank != 3 or width % heads:
        call.fail(f"{heads} heads do not share a tensor of rank {query.rank} and width {width}")
    weight, bias = call.tensor("qkv_weight"), call.tensor("qkv_bias")
    parts: list[Tensor] = []
    for place, x in enumerate((query, key, value)):
        rows = slice(place * width, (place + 1) * width)
        own = _linear(x, weight[rows], bias[rows])
        parts.append(widened(own.reshape([*x.shape[:2], heads, width // heads]).permute([0, 2, 1, 3])))
    scores = build.matmul(parts[0] / math.sqrt(width // heads), parts[1].transpose())
    weights = build.softmax(_masked(call, scores))
    mixed = build.matmul(weights, parts[2]).permute([0, 2, 1, 3]).reshape(query.shape).cast(query.dtype)
    return _linear(mixed, call.tensor("proj_weight"), call.tensor("proj_bias")), weights


def _masked(call: Call, scores: Tensor) -> Tensor:
    mask = call.optional("mask")
    if mask is None:
        return scores
    kind = call.integer("mask_type", _EVERY_HEAD)
    if kind != _EVERY_HEAD:
        mask = mask.unsqueeze([0, 1] if kind == 0 else [1, 2])
    return build.where(mask.cast(DType.BOOL), float("-inf"), scores)


def _self_attention(call: Call) -> list[Tensor]:
    inputs = [call.tensor(name) for name in ("query", "key", "value")]
    found, weights = _attention(call, call.integer("num_head"), *inputs)
    if not call.is_read(1):
        return [found]
    shown = weights.mean([1]) if call.flag("average_attn_weights", True) else weights
    return [found, shown.cast(found.dtype)]


def _encoder_layer(call: Call) -> Tensor:
    """Attention and a perceptron, each with a residual connection, normalised before or after."""
    x, is_before = call.tensor("src"), call.flag("norm_first")

    def normalised(y: Tensor, place: int) -> Tensor:
        weight, bias = call.tensor(f"norm_weight_{place}"), call.tensor(f"norm_bias_{place}")
        return build.layer_norm(y, -1, weight, bias, call.number("eps"))

    given = normalised(x, 1) if is_before else x
    found, _ = _attention(call, call.integer("num_heads"), given, given, given)
    x = x + found if is_before else normalised(x + found, 1)
    hidden = _linear(normalised(x, 2) if is_before else x, call.tensor("ffn_weight_1"), call.tensor("ffn_bias_1"))
    hidden = build.gelu(hidden) if call.flag("use_gelu") else build.relu(hidden)
    x = x + _linear(hidden, call.tensor("ffn_weight_2"), call.tensor("ffn_bias_2"))
    return x if is_before else normalised(x, 2)


OPERATORS: dict[str, Operator] = {
    "aten._native_multi_head_attention.default": _self_attention,
    "aten._transformer_encoder_layer_fwd.default": _encoder_layer,
}

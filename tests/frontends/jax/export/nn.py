"""`jax.nn`: activations, normalizations, attention, losses."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import nn

from tests.frontends.jax.export.recipe import Function, integers, normal, positive

_PLAIN: Final = (
    *("relu", "relu6", "sigmoid", "softplus", "soft_sign", "silu", "log_sigmoid", "leaky_relu", "hard_sigmoid"),
    *("hard_silu", "hard_tanh", "elu", "celu", "selu", "gelu", "glu", "mish", "squareplus", "sparse_plus"),
    *("softmax", "log_softmax", "standardize"),
)


def _layer_norm(x, scale, offset):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + offset


def _cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()


def _rotary(x):
    position, half = jnp.arange(x.shape[0]), x.shape[1] // 2
    angle = position[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    left, right = jnp.split(x, 2, 1)
    return jnp.concatenate(
        [left * jnp.cos(angle) - right * jnp.sin(angle), left * jnp.sin(angle) + right * jnp.cos(angle)], 1
    )


_HEADS: Final = (normal(2, 5, 4, 8), normal(2, 5, 2, 8), normal(2, 5, 2, 8))

FUNCTIONS: Final = (
    *(Function(f"nn_{name}", getattr(nn, name), (normal(4, 6),)) for name in _PLAIN),
    Function("nn_gelu_exact", lambda x: nn.gelu(x, approximate=False), (normal(4, 6),)),
    Function("nn_softmax_where", lambda x: nn.softmax(x, where=x > -1), (normal(4, 6),)),
    Function("nn_attention", nn.dot_product_attention, (normal(2, 5, 2, 8),) * 3),
    Function("nn_attention_causal", lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True), _HEADS),
    Function("layer_norm", _layer_norm, (normal(4, 6), normal(6), normal(6))),
    Function(
        "rms_norm",
        lambda x, w: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w,
        (normal(4, 6), normal(6)),
    ),
    Function(
        "batch_norm", lambda x, m, v: (x - m) * jax.lax.rsqrt(v + 1e-5), (normal(4, 3, 3, 6), normal(6), positive(6))
    ),
    Function(
        "group_norm",
        lambda x: nn.standardize(x.reshape(2, 4, 4, 2, 3), (1, 2, 4)).reshape(x.shape),
        (normal(2, 4, 4, 6),),
    ),
    Function("cross_entropy", _cross_entropy, (normal(4, 6), integers(0, 6, 4))),
    Function(
        "huber",
        lambda x, y: jnp.where(abs(x - y) < 1, (x - y) ** 2 / 2, abs(x - y) - 0.5).mean(),
        (normal(9), normal(9)),
    ),
    Function(
        "cosine",
        lambda x, y: (x * y).sum(-1) / jnp.linalg.norm(x, axis=-1) / jnp.linalg.norm(y, axis=-1),
        (normal(4, 6), normal(4, 6)),
    ),
    Function("rotary", _rotary, (normal(5, 8),)),
)

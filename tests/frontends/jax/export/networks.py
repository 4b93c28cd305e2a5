"""Small networks, steps of their training, and functions of symbolic sizes."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import lax, nn

from tests.frontends.jax.export.recipe import Function, Sizes, integers, normal, positive


def _dense(layer, x):
    return x @ layer["w"] + layer["b"]


def _mlp(layers, x):
    for layer in layers[:-1]:
        x = nn.relu(_dense(layer, x))
    return _dense(layers[-1], x)


def _norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _block(p, x):
    heads = [(_norm(x) @ p[name]).reshape(x.shape[0], 2, 4) for name in ("q", "k", "v")]
    x = x + nn.dot_product_attention(*(each[None] for each in heads))[0].reshape(x.shape) @ p["o"]
    return x + nn.gelu(_norm(x) @ p["up"]) @ p["down"]


def _causal(p, tokens):
    x = p["table"][tokens] + p["place"][: tokens.shape[0]]
    x = _block(p, x)
    return nn.log_softmax(_norm(x) @ p["table"].T)


def _convolutional(p, x):
    x = nn.relu(lax.conv(x, p["first"], (2, 2), "SAME"))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.mean((2, 3)) @ p["last"]


def _sgd(layers, x, y):
    gradient = jax.grad(lambda weights: ((_mlp(weights, x) - y) ** 2).mean())(layers)
    return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, layers, gradient)


def _adam(weight, first, second, slope, count):
    first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
    scaled = (first / (1 - 0.9**count)) / (jnp.sqrt(second / (1 - 0.999**count)) + 1e-8)
    return weight - 1e-2 * scaled, first, second


def _cached(cache, x, place):
    cache = lax.dynamic_update_slice(cache, x[None], (place, 0))
    scores = jnp.where(jnp.arange(cache.shape[0]) <= place, cache @ x, -jnp.inf)
    return nn.softmax(scores) @ cache, cache


def _mixer(p, x):
    x = x + nn.gelu(_norm(x).T @ p["tokens"]).T
    return x + nn.gelu(_norm(x) @ p["channels"])


_LAYERS: Final = [{"w": normal(4, 8), "b": normal(8)}, {"w": normal(8, 3), "b": normal(3)}]
_BLOCK: Final = {name: normal(8, 8) for name in "qkvo"} | {"up": normal(8, 16), "down": normal(16, 8)}
_BATCH: Final[tuple[Sizes, ...]] = ({"n": 1}, {"n": 5})
_LONG: Final[tuple[Sizes, ...]] = ({"n": 1}, {"n": 5}, {"n": 16})
_PAIR: Final[tuple[Sizes, ...]] = ({"n": 2, "m": 3}, {"n": 4, "m": 1})

FUNCTIONS: Final = (
    Function("mlp", _mlp, (_LAYERS, normal(5, 4))),
    Function("transformer_block", _block, (_BLOCK, normal(5, 8))),
    Function(
        "language_model", _causal, ({**_BLOCK, "table": normal(11, 8), "place": normal(9, 8)}, integers(0, 11, 6))
    ),
    Function(
        "convolutional", _convolutional, ({"first": normal(4, 3, 3, 3), "last": normal(4, 5)}, normal(2, 3, 8, 8))
    ),
    Function("sgd_step", _sgd, (_LAYERS, normal(5, 4), normal(5, 3))),
    Function("adam_step", _adam, (normal(4, 3), normal(4, 3), positive(4, 3), normal(4, 3), positive())),
    Function("cached_attention", _cached, (normal(6, 4), normal(4), integers(0, 6))),
    Function("mixer", _mixer, ({"tokens": normal(6, 6), "channels": normal(4, 4)}, normal(6, 4))),
    Function("n_elementwise", lambda x: jnp.tanh(x) * 2 + x, (normal("n", 3),), _BATCH),
    Function("n_mlp", _mlp, (_LAYERS, normal("n", 4)), _BATCH),
    Function("n_softmax", lambda x: nn.softmax(x, 0), (normal("n", 4),), _BATCH),
    Function("n_mean", lambda x: (x.mean(0), x.sum()), (normal("n", 4),), _BATCH),
    Function("n_matmul", jnp.matmul, (normal("n", 3), normal(3, "m")), _PAIR),
    Function("n_reshape", lambda x: x.reshape(-1, 2), (normal("n", 4),), _BATCH),
    Function("n_concatenate", lambda x, y: jnp.concatenate([x, y]), (normal("n", 3), normal("m", 3)), _PAIR),
    Function("n_attention", _block, (_BLOCK, normal("n", 8)), _BATCH),
    Function("n_broadcast", lambda x, y: x[:, None] - y[None, :], (normal("n"), normal("m")), _PAIR),
    Function("n_arange", lambda x: x * jnp.arange(x.shape[0]), (normal("n"),), _BATCH),
    Function("n_embedding", lambda table, tokens: table[tokens], (normal(7, 3), integers(0, 7, "n")), _BATCH),
    Function(
        "n_convolution", lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (normal("n", 3, 5, 5), normal(2, 3, 3, 3)), _BATCH
    ),
    Function("n_layer_norm", _norm, (normal("n", "m"),), _PAIR),
    Function("n_grad", jax.grad(lambda x: (nn.softmax(x) ** 2).sum()), (normal("n", 4),), _BATCH),
    Function("n_pad", lambda x: jnp.pad(x, ((1, 1), (0, 2))), (normal("n", 3),), _BATCH),
    Function(
        "n_halves",
        lambda x: (x[: x.shape[0] // 2], x[::2], x[x.shape[0] // 2 :] * (x.shape[0] % 3)),
        (normal("n", 3),),
        _BATCH,
    ),
    Function("n_argmax", lambda x: (x.argmax(0), jnp.argmin(x), lax.argmax(x, 0, jnp.int32)), (normal("n", 3),), _LONG),
    Function(
        "n_running",
        lambda x: (
            jnp.cumsum(x, 0),
            lax.cummax(x, 0, reverse=True),
            jnp.cumprod(x, 0),
            jnp.cumsum(x.astype(jnp.int32), 0),
        ),
        (positive("n", 3),),
        _LONG,
    ),
    Function("n_twice", lambda x: x[: x.shape[0] // 2] + x[x.shape[0] // 2 :], (normal("2*n", 3),), _BATCH),
)

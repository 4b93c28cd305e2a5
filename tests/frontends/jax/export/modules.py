"""Modules of Flax NNX and of Haiku, with their parameters as the first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import haiku as hk
import jax
import jax.numpy as jnp
from flax import nnx

from tests.frontends.jax.export.recipe import Draw, Function, Sizes, normal, positive

_Module: Any = nnx.Module
_BATCH: Final[tuple[Sizes, ...]] = ({"n": 1}, {"n": 3})


class _Perceptron(_Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first, self.last = nnx.Linear(5, 12, rngs=rngs), nnx.LinearGeneral(12, (2, 3), rngs=rngs)
        self.norm, self.dropout = nnx.RMSNorm(12, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.dropout(self.norm(nnx.gelu(self.first(x)))))


class _Images(_Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Conv(3, 8, (3, 3), strides=2, rngs=rngs)
        self.each = nnx.Conv(8, 8, (3, 3), feature_group_count=8, use_bias=False, rngs=rngs)
        self.back = nnx.ConvTranspose(8, 4, (2, 2), strides=(2, 2), rngs=rngs)
        self.norm, self.groups = nnx.BatchNorm(8, rngs=rngs), nnx.GroupNorm(8, 2, rngs=rngs)
        self.last = nnx.Linear(4, 5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.max_pool(nnx.relu(self.norm(self.first(x))), (2, 2), (2, 2))
        return self.last(self.back(nnx.silu(self.groups(self.each(x)))).mean((1, 2)))


class _Attention(_Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.table = nnx.Embed(11, 8, rngs=rngs)
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 8, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        tokens = jnp.argmax(x, -1)
        x = x + self.attention(self.norm(x), mask=nnx.make_causal_mask(tokens))
        return self.table.attend(x + self.down(nnx.swish(self.up(self.norm(x)))) + self.table(tokens))


def _cells(cell: Any) -> Callable[[nnx.Rngs], nnx.Module]:
    return lambda rngs: nnx.RNN(cell(4, 6, rngs=rngs), rngs=rngs)


def _both_ways(rngs: nnx.Rngs) -> nnx.Module:
    first, second = (nnx.RNN(nnx.GRUCell(4, 6, rngs=rngs), rngs=rngs) for _ in range(2))
    return nnx.Bidirectional(first, second, rngs=rngs)


def _drawn(path: Any, leaf: Any) -> Draw:
    is_variance = str(path[-1].key).startswith(("var", "average")) and "mean_ema" not in str(path)
    return (positive if is_variance else normal)(*leaf.shape)


def _nnx(
    name: str,
    make: Callable[[nnx.Rngs], nnx.Module],
    *arguments: Draw,
    sizes: tuple[Sizes, ...] = ({},),
    trains: bool = False,
) -> Function:
    module = make(nnx.Rngs(0))
    if not trains:
        module.eval()
    graph, state, others = nnx.split(module, nnx.Any(nnx.Param, nnx.BatchStat), ...)

    def function(weights: Any, *values: Any) -> Any:
        # Copies: the counts of random numbers change inside.
        own, rest = jax.tree.map(lambda leaf: leaf, (state, others))
        nnx.replace_by_pure_dict(own, weights)
        made = nnx.merge(graph, own, rest)
        found = made(*values)
        return (found, nnx.to_pure_dict(nnx.state(made, nnx.BatchStat))) if trains else found

    weights = jax.tree.map_with_path(_drawn, nnx.to_pure_dict(state))
    return Function(f"nnx_{name}", function, (weights, *arguments), sizes)


def _haiku(
    name: str,
    written: Callable[..., Any],
    *arguments: Draw,
    sizes: tuple[Sizes, ...] = ({},),
    trained: Callable[..., Any] | None = None,
    keeps: bool = False,
) -> Function:
    """`trained` is the same module in training, which alone makes all of its state."""
    pure = hk.transform_with_state(written)
    shapes = [[size if isinstance(size, int) else 2 for size in each.dims] for each in arguments]
    specs = [jax.ShapeDtypeStruct(shape, each.dtype) for shape, each in zip(shapes, arguments, strict=True)]
    begun = jax.eval_shape(hk.transform_with_state(trained or written).init, jax.random.key(0), *specs)
    weights, state = jax.tree.map_with_path(_drawn, begun)

    def function(weights: Any, state: Any, *values: Any) -> Any:
        found, after = pure.apply(weights, state, None, *values)
        return (found, after) if keeps else found

    return Function(f"haiku_{name}", function, (weights, state, *arguments), sizes)


def _images(trains: bool) -> Callable[[Any], Any]:
    def written(x: Any) -> Any:
        x = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(8, 3, stride=2)(x), is_training=trains)
        return hk.Linear(5)(hk.Flatten()(hk.avg_pool(jax.nn.relu(x), 2, 2, "SAME")))

    return written


def _attention(x: Any) -> Any:
    norm = hk.LayerNorm(-1, True, True)(x)
    return x + hk.MultiHeadAttention(2, 4, model_size=8, w_init=hk.initializers.VarianceScaling())(norm, norm, norm)


def _unrolled(make: Callable[[], Any]) -> Callable[[Any], Any]:
    def written(x: Any) -> Any:
        cell = make()
        found, state = hk.dynamic_unroll(cell, x, cell.initial_state(x.shape[1]))
        return found, jax.tree.leaves(state)

    return written


FUNCTIONS: Final = (
    _nnx("perceptron", _Perceptron, normal("n", 5), sizes=_BATCH),
    _nnx("convolutional", _Images, normal("n", 8, 8, 3), sizes=_BATCH),
    _nnx("convolutional_training", _Images, normal(3, 8, 8, 3), trains=True),
    _nnx("attention", _Attention, normal(2, 5, 8)),
    _nnx("rnn", _cells(nnx.SimpleCell), normal("n", 5, 4), sizes=_BATCH),
    _nnx("gru", _cells(nnx.GRUCell), normal("n", 5, 4), sizes=_BATCH),
    _nnx("lstm", _cells(nnx.OptimizedLSTMCell), normal("n", 5, 4), sizes=_BATCH),
    _nnx("bidirectional", _both_ways, normal(2, 5, 4)),
    _haiku("perceptron", lambda x: hk.nets.MLP([12, 3])(x), normal("n", 5), sizes=_BATCH),
    _haiku("convolutional", _images(False), normal("n", 8, 8, 3), sizes=_BATCH, trained=_images(True)),
    _haiku("convolutional_training", _images(True), normal(3, 8, 8, 3), keeps=True),
    _haiku("attention", _attention, normal(2, 5, 8)),
    _haiku("rnn", _unrolled(lambda: hk.VanillaRNN(6)), normal(5, 2, 4)),
    _haiku("gru", _unrolled(lambda: hk.GRU(6)), normal(5, 2, 4)),
    _haiku("lstm", _unrolled(lambda: hk.LSTM(6)), normal(5, 2, 4)),
)

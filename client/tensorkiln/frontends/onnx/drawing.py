"""Random numbers by Threefry: the same key gives the same numbers on every target.

A node's seed is its key; nodes without a seed derive a key from the graph's input `random_key`. Other runtimes draw
different numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import Dim
from ..composed.drawing import uniform_between
from .legacy import refuse_training
from .node import Node
from .parameters import element_type
from .value import Value

HALF_STEP: Final = 2.0**-25
"""Half the step of uniform float32 numbers; replaces 0, whose logarithm is infinite."""


def _key(node: Node) -> int | Tensor:
    if not node.is_set("seed"):
        return node.next_key()
    return int(np.float32(node.number("seed")).view(np.uint32))


def _dtype(node: Node, otherwise: DType) -> DType:
    return element_type(tensor_dtype_to_np_dtype(node.integer("dtype"))) if node.is_set("dtype") else otherwise


def _shape(node: Node) -> tuple[Sequence[Dim], DType]:
    """The shape, from the attribute or the input, and the default element type."""
    if node.op.endswith("Like"):
        x = node.value(0)
        return x.shape, x.dtype if isinstance(x, Tensor) else element_type(x.dtype)
    return node.integers("shape"), DType.FLOAT32


def uniform(node: Node) -> Value:
    low, high = node.number("low", 0.0), node.number("high", 1.0)
    shape, own = _shape(node)
    drawn = build.random_uniform(node.builder, shape, _key(node), _dtype(node, own))
    return uniform_between(drawn, low, high, node.fail)


def normal(node: Node) -> Value:
    mean, scale = node.number("mean", 0.0), node.number("scale", 1.0)
    shape, own = _shape(node)
    return build.random_normal(node.builder, shape, _key(node), _dtype(node, own)) * scale + mean


def bernoulli(node: Node) -> Value:
    """1 with the probability that the input gives for each element."""
    chance = node.tensor(0)
    wide = chance if chance.dtype is DType.FLOAT64 else chance.cast(DType.FLOAT32)
    drawn = build.random_uniform(node.builder, chance.shape, _key(node), wide.dtype)
    return (drawn < wide).cast(_dtype(node, chance.dtype))


def multinomial(node: Node) -> Value:
    """Draw classes by unnormalized log-probabilities, as the maximum after adding Gumbel noise."""
    logits, count = node.tensor(0), node.integer("sample_size", 1)
    if logits.rank != 2:
        node.invalid(f"log-probabilities are the rows of a matrix, not of rank {logits.rank}")
    drawn = build.random_uniform(node.builder, [logits.shape[0], count, logits.shape[1]], _key(node))
    # Not drawn + HALF_STEP, which could round to 1 and give infinite noise; finite noise never selects -inf.
    noise = -build.log(-build.log(build.maximum(drawn, HALF_STEP)))
    chosen = build.argmax(logits.cast(DType.FLOAT32).unsqueeze(1) + noise, -1)
    return chosen.cast(_dtype(node, DType.INT32))


def dropout(node: Node) -> list[Value]:
    """The input and the mask of kept elements; in training, drop elements and scale the others."""
    node.ignore("ratio")
    refuse_training(node)
    x = node.value(0)
    ratio: float | Tensor = 0.5
    if node.opset < 12 or not node.has(2) or not np.any(node.host(2)):
        node.ignore("seed")
        ratio = 0.0
    elif node.has(1):
        given = node.value(1)
        ratio = given if isinstance(given, Tensor) else float(given.reshape(()))
    if isinstance(ratio, float) and not ratio:
        node.ignore("seed")
        return [x, build.ones(node.builder, x.shape, "bool")] if node.is_read(1) else [x]
    key = node.integer("seed") % (1 << 64) if node.is_set("seed") else node.next_key()
    x = node.tensor(0)
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    dropped = ratio.cast(wide) if isinstance(ratio, Tensor) else ratio
    kept = build.random_uniform(node.builder, x.shape, key, wide) >= dropped
    return [build.where(kept, x.cast(wide) / (1.0 - dropped), 0.0).cast(x.dtype), kept]


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {
    "Bernoulli": bernoulli,
    "Dropout": dropout,
    "Multinomial": multinomial,
    "RandomNormal": normal,
    "RandomNormalLike": normal,
    "RandomUniform": uniform,
    "RandomUniformLike": uniform,
}

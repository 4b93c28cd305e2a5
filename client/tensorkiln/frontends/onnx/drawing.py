"""Random numbers by Threefry: the same key gives the same numbers on every target.

Nodes with a seed have a key of their own, the others one each of what the graph's input `random_key` gives.
They are not the numbers that other runtimes draw.
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
"""Half of what uniform float32 numbers are multiples of: it stands for 0, whose logarithm is infinite."""


def _key(node: Node) -> int | Tensor:
    if not node.is_set("seed"):
        return node.next_key()
    return int(np.float32(node.number("seed")).view(np.uint32))


def _dtype(node: Node, otherwise: DType) -> DType:
    return element_type(tensor_dtype_to_np_dtype(node.integer("dtype"))) if node.is_set("dtype") else otherwise


def _shape(node: Node) -> tuple[Sequence[Dim], DType]:
    """As the attribute has it, or of the input; and the element type where none is asked for."""
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
    """1 as often as the input says of each element."""
    chance = node.tensor(0)
    wide = chance if chance.dtype is DType.FLOAT64 else chance.cast(DType.FLOAT32)
    drawn = build.random_uniform(node.builder, chance.shape, _key(node), wide.dtype)
    return (drawn < wide).cast(_dtype(node, chance.dtype))


def multinomial(node: Node) -> Value:
    """Classes of each row, by their unnormalized log-probabilities: the greatest of these with Gumbel's noise."""
    logits, count = node.tensor(0), node.integer("sample_size", 1)
    if logits.rank != 2:
        node.invalid(f"log-probabilities are the rows of a matrix, not of rank {logits.rank}")
    drawn = build.random_uniform(node.builder, [logits.shape[0], count, logits.shape[1]], _key(node))
    # A sum would be rounded to 1, whose noise is infinite; so every noise is finite, and -inf is never chosen.
    noise = -build.log(-build.log(build.maximum(drawn, HALF_STEP)))
    chosen = build.argmax(logits.cast(DType.FLOAT32).unsqueeze(1) + noise, -1)
    return chosen.cast(_dtype(node, DType.INT32))


def dropout(node: Node) -> list[Value]:
    """The input, and the mask of what is kept; in training elements are dropped, and the others scaled to make up."""
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

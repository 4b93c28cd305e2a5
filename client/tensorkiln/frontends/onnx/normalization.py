"""BatchNormalization, LRN, Softmax, LayerNormalization and related operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...build import (
    Tensor,
    absolute,
    batch_norm,
    equal,
    layer_norm,
    local_response_norm,
    log_softmax,
    rms_norm,
    softmax,
    where,
)
from ...build.conversion import widened
from .legacy import refuse_training
from .node import Node
from .value import Value


def batch_normalization(node: Node) -> Value | Sequence[Value]:
    """BatchNormalization. Known weights become one factor and one offset per channel, computed in float64."""
    refuse_training(node)
    if node.integer("spatial", 1) != 1:
        node.fail("statistics of each position (spatial=0) are not supported")
    if node.integer("training_mode", 0):
        return _trained(node)
    node.ignore("momentum")
    x = node.tensor(0)
    eps = node.number("epsilon", 1e-5)
    weights = [value for value in node.inputs[1:5] if isinstance(value, np.ndarray)]
    if len(weights) != 4:
        return batch_norm(x, node.tensor(1), node.tensor(2), node.tensor(3), node.tensor(4), eps)
    if len({weight.shape for weight in weights}) > 1 or weights[0].ndim != 1:
        node.invalid(f"the shapes {[weight.shape for weight in weights]} are not one entry a channel")
    scale, bias, mean, variance = (weight.astype(np.float64) for weight in weights)
    factor = scale / np.sqrt(variance + eps)
    aligned = (-1, *(1,) * (x.rank - 2))
    factors, offsets = (
        node.parameter(array.astype(x.dtype.numpy).reshape(aligned)) for array in (factor, bias - mean * factor)
    )
    return node.shaped(x.shape, x * factors + offsets)


def _trained(node: Node) -> list[Tensor]:
    """`x` normalised by the batch's mean and variance, then the updated running mean and variance."""
    x, momentum, eps = node.tensor(0), node.number("momentum", 0.9), node.number("epsilon", 1e-5)
    over = [axis for axis in range(x.rank) if axis != 1]
    mean, variance = x.mean(over), x.var_(over)
    y = batch_norm(x, node.tensor(1), node.tensor(2), mean, variance, eps)
    old = (node.tensor(3), node.tensor(4))
    new = (given * momentum + own * (1 - momentum) for given, own in zip(old, (mean, variance), strict=True))
    return [y, *new]


def instance_normalization(node: Node) -> Value:
    x = node.tensor(0)
    eps = node.number("epsilon", 1e-5)
    aligned = (-1, *(1,) * (x.rank - 2))
    scale, bias = node.tensor(1).reshape(aligned), node.tensor(2).reshape(aligned)
    return node.shaped(x.shape, layer_norm(x, range(2, x.rank), scale, bias, eps))


def local_response_normalization(node: Node) -> Value:
    size = node.integer("size")
    alpha, beta = node.number("alpha", 1e-4), node.number("beta", 0.75)
    return local_response_norm(node.tensor(0), size, alpha, beta, node.number("bias", 1.0))


def _normalised_axes(node: Node, rank: int) -> list[int]:
    """The axes of a softmax. Before opset 13, it covers all axes from `axis` on."""
    if node.opset >= 13:
        return [node.integer("axis", -1)]
    axis = node.integer("axis", 1)
    if not -rank <= axis <= rank:
        node.fail(f"axis {axis} is out of range for rank {rank}")
    return list(range(axis + rank if axis < 0 else axis, rank))


def softmax_(node: Node) -> Value:
    x = node.tensor(0)
    return softmax(x, _normalised_axes(node, x.rank))


def log_softmax_(node: Node) -> Value:
    x = node.tensor(0)
    return log_softmax(x, _normalised_axes(node, x.rank))


def _trailing_axes(node: Node, x: Tensor) -> range:
    """The axes from the attribute `axis` on."""
    axis = node.integer("axis", -1)
    if not -x.rank <= axis < x.rank:
        node.invalid(f"axis {axis} is out of range for rank {x.rank}")
    return range(axis % x.rank, x.rank)


def layer_normalization(node: Node) -> list[Tensor]:
    if node.integer("stash_type", 1) != 1:
        node.fail("statistics in another type than float32 are not supported")
    x = node.tensor(0)
    over = _trailing_axes(node, x)
    eps = node.number("epsilon", 1e-5)
    normal = layer_norm(x, over, node.tensor(1), node.tensor(2) if node.has(2) else None, eps)
    node.shaped(x.shape, normal)
    if not (node.is_read(1) or node.is_read(2)):
        return [normal]
    wide = widened(x)
    return [normal, wide.mean(over, keepdims=True), (wide.var_(over, keepdims=True) + eps).rsqrt()]


def simplified_layer_normalization(node: Node) -> list[Tensor]:
    """ONNX Runtime's operator: divide by the root of the mean square over the axes from `axis` on."""
    node.ignore("stash_type")
    x = node.tensor(0)
    over = _trailing_axes(node, x)
    eps = node.number("epsilon", 1e-5)
    normal = node.shaped(x.shape, rms_norm(x, over, node.tensor(1).cast(x.dtype), eps))
    if not node.is_read(1):
        return [normal]
    wide = widened(x)
    return [normal, ((wide * wide).mean(over, keepdims=True) + eps).rsqrt()]


def lp_normalization(node: Node) -> Value:
    """Divide by the norm along an axis; where the norm is 0, the result is 0."""
    x, axis, power = node.tensor(0), node.integer("axis", -1), node.integer("p", 2)
    if power not in (1, 2):
        node.invalid(f"p is {power}, and 1 or 2 is taken")
    size = absolute(x).sum([axis], keepdims=True) if power == 1 else (x * x).sum([axis], keepdims=True).sqrt()
    return where(equal(size, 0.0), 0.0, x / size)


def mean_variance_normalization(node: Node) -> Value:
    """Subtract the mean and divide by the deviation plus 1e-9, as in ONNX's function body."""
    x = node.tensor(0)
    over = node.integers("axes", [0, 2, 3])
    centred = x - x.mean(over, keepdims=True)
    return centred / ((centred * centred).mean(over, keepdims=True).sqrt() + 1e-9)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": local_response_normalization,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": log_softmax_,
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "Softmax": softmax_,
}

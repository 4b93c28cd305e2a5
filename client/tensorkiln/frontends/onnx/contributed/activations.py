"""Gelu and its relatives, with the bias that the optimiser adds to their operand."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....build.conversion import widened
from ..node import Node
from ..value import Value
from .bias import biased


def gelu(node: Node) -> Value:
    return build.gelu(node.tensor(0))


def biased_gelu(node: Node) -> Value:
    return build.gelu(biased(node, node.tensor(0), 1))


def fast_gelu(node: Node) -> Value:
    """Gelu by tanh."""
    return build.gelu(biased(node, node.tensor(0), 1), "tanh")


def quick_gelu(node: Node) -> Value:
    """`x * sigmoid(alpha * x)`, computed in float32 for the 16-bit floats."""
    x, alpha = node.tensor(0), node.number("alpha", 1.702)
    wide = widened(x)
    return (wide * build.sigmoid(wide * alpha)).cast(x.dtype)


def split_gelu(node: Node) -> Value:
    """The left half of the last axis times the Gelu of the right half, both with their bias."""
    x = biased(node, node.tensor(0), 1)
    left, right = build.split(x, [x.shape[-1] // 2] * 2, -1)
    return left * build.gelu(right)


def biased_residual(node: Node) -> Value:
    x = node.tensor(0)
    return node.shaped(x.shape, x + node.tensor(1) + node.tensor(2))


def activated(node: Node, x: Tensor, parameters: list[float]) -> Tensor:
    """`x` by the node's attribute `activation`, with its parameters in the order of the operator's attributes."""
    kind = node.string("activation", "")
    defaults = _DEFAULTS.get(kind)
    if defaults is None:
        node.fail(f"the activation {kind!r} is not supported; supported are {', '.join(_DEFAULTS)}")
    given = [*parameters, *defaults[len(parameters) :]]
    return _ACTIVATIONS[kind](x, *given)


_DEFAULTS: dict[str, tuple[float, ...]] = {
    "": (),
    "Clip": (-3.402823466e38, 3.402823466e38),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01,),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
_ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "": lambda x: x,
    "Clip": lambda x, low, high: x.clip(low, high),
    "HardSigmoid": lambda x, alpha, beta: (x * alpha + beta).clip(0.0, 1.0),
    "LeakyRelu": lambda x, alpha: build.leaky_relu(x, alpha),
    "Relu": lambda x: build.relu(x),
    "Sigmoid": lambda x: build.sigmoid(x),
    "Tanh": lambda x: build.tanh(x),
}

OPERATORS: dict[str, Callable[[Node], Value]] = {
    "BiasAdd": biased_residual,
    "BiasGelu": biased_gelu,
    "BiasSplitGelu": split_gelu,
    "FastGelu": fast_gelu,
    "Gelu": gelu,
    "QuickGelu": quick_gelu,
}

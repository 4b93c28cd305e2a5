"""Conv."""

from __future__ import annotations

from collections.abc import Callable

from ...build import Tensor, conv
from .node import Node
from .value import Value
from .window import window_attributes


def convolution(node: Node) -> Tensor:
    return convolved(node, node.tensor(0), node.tensor(1), node.tensor(2) if node.has(2) else None)


def convolved(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve `x` with these weights, by the node's attributes."""
    if weight.rank < 3:
        node.invalid(f"weights of rank {weight.rank} have no spatial axes")
    kernel = node.integers("kernel_shape", [dim for dim in weight.shape[2:] if isinstance(dim, int)])
    if tuple(kernel) != weight.shape[2:]:
        node.fail(f"kernel_shape is {kernel}, the weights have {weight.shape[2:]}")
    window = window_attributes(node, x, kernel)
    return conv(x, weight, bias, window.strides, window.padding, window.dilations, node.integer("group", 1))


OPERATORS: dict[str, Callable[[Node], Value]] = {"Conv": convolution}

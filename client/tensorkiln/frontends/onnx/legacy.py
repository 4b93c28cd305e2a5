"""What opset 6 spells otherwise: one-sided broadcasting from an axis, and flags of inference."""

from __future__ import annotations

from ...build import Tensor
from .node import Node


def operands(node: Node) -> tuple[Tensor, Tensor]:
    """The inputs of a binary operator. Before opset 7, `axis` says where the second's dims stand in the first's."""
    left, right = node.tensor(0), node.tensor(1)
    if node.opset >= 7:
        return left, right
    if not node.integer("broadcast", 0):
        node.ignore("axis")
        return left, right
    start = node.integer("axis", left.rank - right.rank)
    if not 0 <= start <= left.rank - right.rank:
        node.fail(f"an operand of rank {right.rank} does not stand at axis {start} of rank {left.rank}")
    return left, right.reshape(*right.shape, *(1,) * (left.rank - start - right.rank))


def refuse_training(node: Node) -> None:
    """Before opset 7, a node that also trains says `is_test` when it does not."""
    if node.opset < 7 and node.integer("is_test", 0) != 1:
        node.fail("training is not supported")


def channel_slope(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    """The slope of a PRelu: one a channel before opset 7, broadcast from the right since."""
    if node.opset >= 7 or x.rank < 2 or slope.rank != 1:
        return slope
    return slope.reshape(-1, *(1,) * (x.rank - 2))

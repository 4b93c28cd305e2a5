"""Rules of opset 6: one-sided broadcasting from an axis, and inference flags."""

from __future__ import annotations

from ...build import Tensor
from .node import Node


def operands(node: Node) -> tuple[Tensor, Tensor]:
    """The inputs of a binary operator. Before opset 7, `axis` is the position of the second's dims in the first."""
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
    """UnsupportedGraphError for a node in training mode: before opset 7, one without `is_test`."""
    if node.opset < 7 and node.integer("is_test", 0) != 1:
        node.fail("training is not supported")


def channel_slope(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    """The slope of a PRelu: one per channel before opset 7, broadcast from the right since then."""
    if node.opset >= 7 or x.rank < 2 or slope.rank != 1:
        return slope
    return slope.reshape(-1, *(1,) * (x.rank - 2))

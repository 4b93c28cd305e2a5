"""The sum with an optional operand that the optimiser moves into another operator."""

from __future__ import annotations

from ....build import Tensor
from ..node import Node


def biased(node: Node, x: Tensor, place: int) -> Tensor:
    """`x` plus the input at `place`, which fits the shape of `x`; `x` itself without that input."""
    return node.shaped(x.shape, x + node.tensor(place)) if node.has(place) else x

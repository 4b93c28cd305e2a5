"""Random bits from tinygrad's seed and counter; other operations turn them into random numbers."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...build.broadcast import broadcast_shape
from .node import Node, Operation


def _threefry(node: Node) -> Tensor:
    counter, key = node.values
    shape = broadcast_shape(node.builder, [counter.shape, key.shape])
    return build.threefry(counter.expand(shape), key.expand(shape) if key.shape else key)


OPERATIONS: Final = {"THREEFRY": Operation(_threefry)}

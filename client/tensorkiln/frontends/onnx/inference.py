"""Operators that do nothing once training is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...build import ones
from .legacy import refuse_training
from .node import Node
from .value import Value


def identity(node: Node) -> Value:
    return node.value(0)


def dropout(node: Node) -> list[Value]:
    """The input itself, and the mask of what was kept: all of it."""
    node.ignore("ratio", "seed")
    refuse_training(node)
    if node.opset >= 12 and node.has(2) and np.any(node.host(2)):
        node.fail("training is not supported")
    kept = node.value(0)
    return [kept, ones(node.builder, kept.shape, "bool")] if node.is_read(1) else [kept]


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {"Dropout": dropout, "Identity": identity}

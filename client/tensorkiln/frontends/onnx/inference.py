"""Operators that do nothing once training is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .node import Node
from .value import Value


def identity(node: Node) -> Value:
    return node.value(0)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value]]] = {"Identity": identity}

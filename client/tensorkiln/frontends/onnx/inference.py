"""Operators that are identities in inference."""

from __future__ import annotations

from collections.abc import Callable

from .node import Node
from .value import Held


def identity(node: Node) -> Held:
    return node.held(0)


OPERATORS: dict[str, Callable[[Node], Held]] = {"Identity": identity}

"""Gather by computed position."""

from __future__ import annotations

from collections.abc import Callable

from ...build import gather, take
from ..composed.placing import wrapped
from .node import Node
from .value import Value


def gather_(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", 0)
    return take(x, wrapped(indices, x.shape[axis]), axis)


def gather_elements(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", 0)
    return gather(x, wrapped(indices, x.shape[axis]), axis)


OPERATORS: dict[str, Callable[[Node], Value]] = {"Gather": gather_, "GatherElements": gather_elements}

"""Elements by computed position."""

from __future__ import annotations

from collections.abc import Callable

from ...build import Tensor, dim_value, gather, take, where
from ...expr import Dim
from .node import Node
from .value import Value


def wrapped(indices: Tensor, extent: Dim) -> Tensor:
    """Indices counted from the front: ONNX allows negative ones."""
    size = dim_value(indices.builder, extent, indices.dtype)
    return where(indices < 0, indices + size, indices)


def gather_(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", 0)
    return take(x, wrapped(indices, x.shape[axis]), axis)


def gather_elements(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.integer("axis", 0)
    return gather(x, wrapped(indices, x.shape[axis]), axis)


OPERATORS: dict[str, Callable[[Node], Value]] = {"Gather": gather_, "GatherElements": gather_elements}

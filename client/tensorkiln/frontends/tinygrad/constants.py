"""Constants, each in the type that its consumer requires."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...build import Tensor
from ...errors import UnsupportedGraphError
from .node import Node, Operation, nothing


def _constant(node: Node) -> Tensor:
    if node.uop.is_invalid:
        raise UnsupportedGraphError("a value that is never written is read; give it one, as by Tensor.zeros")
    return number(node, node.uop.val)


def number(node: Node, value: Any) -> Tensor:
    """A number in the type of the node: integers wrap, and floats are rounded once."""
    dtype = node.dtype
    if dtype.is_bool:
        return node.builder.scalar(bool(value), dtype)
    if dtype.is_integer:
        whole = int(value)
        low = int(dtype.min)
        return node.builder.scalar((whole - low) % (1 << dtype.bits) + low, dtype)
    with np.errstate(over="ignore"):
        return node.builder.scalar(float(np.asarray(float(value)).astype(dtype.numpy)), dtype)


OPERATIONS: Final = {"CONST": Operation(_constant, nothing)}

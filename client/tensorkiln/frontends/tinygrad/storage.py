"""Storage: the contents of a buffer become a parameter, and a variable becomes a symbol."""

from __future__ import annotations

from typing import Final

from ...build import Tensor
from ...errors import UnsupportedGraphError
from .node import Node, Operation, nothing
from .sizes import variable_of
from .writing import variable_value


def _buffer(node: Node) -> Tensor:
    variable = variable_of(node.uop)
    if variable is not None:
        return variable_value(node, variable)
    if not isinstance(node.uop.device, str):
        raise UnsupportedGraphError("values on several devices are not supported")
    if node.uop.realized is None:
        raise UnsupportedGraphError(
            "storage that nothing was written to is read; realize the tensor, or make it an input"
        )
    return node.read(node.uop)


OPERATIONS: Final = {"BUFFER": Operation(_buffer, nothing)}

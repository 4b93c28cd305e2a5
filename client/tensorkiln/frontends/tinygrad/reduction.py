"""Reductions over the leading dimensions of an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...build import Tensor
from ...errors import UnsupportedGraphError
from .node import Node, Operation, the_first

_KINDS: Final[dict[str, Callable[..., Any]]] = {"ADD": Tensor.sum, "MUL": Tensor.prod, "MAX": Tensor.max}
_KINDS_OF_BOOL: Final[dict[str, Callable[..., Any]]] = {"ADD": Tensor.any, "MUL": Tensor.all, "MAX": Tensor.any}


def _reduced(node: Node) -> Tensor:
    kind, count = node.uop.arg
    if kind.name not in _KINDS:
        raise UnsupportedGraphError(f"a reduction by {kind.name} is not supported")
    kinds = _KINDS_OF_BOOL if node.value.dtype.is_bool else _KINDS
    return kinds[kind.name](node.value, tuple(range(count))) if count else node.value


OPERATIONS: Final = {"REDUCE": Operation(_reduced, the_first)}

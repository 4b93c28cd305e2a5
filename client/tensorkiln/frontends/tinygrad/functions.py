"""Inlining of calls of functions made by `tinygrad.function`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...build import Tensor
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .node import Asked, Node, Operation, asked


def _body(uop: Any) -> Any:
    """The body of the called function, with its parameters replaced by the arguments."""
    call = uop.src[0]
    if call.op.name == "TUPLE":
        return call.src[uop.arg]
    if call.op.name != "FUNCTION" or call.src[0].op.name != "TUPLE":
        raise UnsupportedGraphError(f"a result of {call.op.name} is not supported")
    body, arguments = call.src[0].src[uop.arg], call.src[1:]
    inner = [each for each in body.toposort(enter_calls=False) if each.op.name == "PARAM"]
    return body.substitute({each: arguments[each.arg.slot] for each in inner}, walk=True)


def _operands(uop: Any, dtype: DType) -> Sequence[Asked]:
    return [asked(_body(uop), dtype)]


def _result(node: Node) -> Tensor:
    return node.value


OPERATIONS: Final = {"GETTUPLE": Operation(_result, _operands)}

"""Comparison, choice, and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ... import build
from ...build import Tensor
from ...build.arithmetic import binop
from ...dtypes import DType
from .element_types import meeting
from .node import Asked, Node, Operation, Rule, asked


def _compared(uop: Any, dtype: DType) -> Sequence[Asked]:
    del dtype
    return [asked(source, meeting(*uop.src)) for source in uop.src]


def _chosen(uop: Any, dtype: DType) -> Sequence[Asked]:
    condition, first, second = uop.src
    return [asked(condition, DType.BOOL), asked(first, dtype), asked(second, dtype)]


def _where(node: Node) -> Tensor:
    return build.where(*node.values)


def _bits(op: str) -> Rule:
    return lambda node: binop(op, node.values[0], node.values[1])


OPERATIONS: Final = {
    "CMPLT": Operation(lambda node: build.less(*node.values), _compared),
    "CMPNE": Operation(lambda node: build.not_equal(*node.values), _compared),
    "CMPEQ": Operation(lambda node: build.equal(*node.values), _compared),
    "WHERE": Operation(_where, _chosen),
    "AND": Operation(_bits("and")),
    "OR": Operation(_bits("or")),
    "XOR": Operation(_bits("xor")),
    "SHL": Operation(_bits("shl")),
    "SHR": Operation(_bits("shr")),
}

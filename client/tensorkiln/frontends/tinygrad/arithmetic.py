"""Arithmetic and tinygrad's elementwise functions."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...build.arithmetic import binop, unary
from .node import Node, Operation, Rule


def _binary(op: str) -> Rule:
    return lambda node: binop(op, node.values[0], node.values[1])


def _unary(op: str) -> Rule:
    """A unary function; an integer operand is first cast to the float type of the result."""
    return lambda node: unary(op, node.value.cast(node.dtype))


def _subtracted(node: Node) -> Tensor:
    return node.values[0] - node.values[1]


def _floor_divided(node: Node) -> Tensor:
    return node.values[0] // node.values[1]


def _floor_remainder(node: Node) -> Tensor:
    return node.values[0] % node.values[1]


def _truncated(node: Node) -> Tensor:
    return build.trunc(node.value) if node.value.dtype.is_float else node.value


def _multiplied_and_added(node: Node) -> Tensor:
    return build.multiply_add(*node.values)


OPERATIONS: Final = {
    "ADD": Operation(_binary("add")),
    "SUB": Operation(_subtracted),
    "MUL": Operation(_binary("mul")),
    "FDIV": Operation(_binary("fdiv")),
    "CDIV": Operation(_binary("idiv")),
    "CMOD": Operation(_binary("mod")),
    "FLOORDIV": Operation(_floor_divided),
    "FLOORMOD": Operation(_floor_remainder),
    "POW": Operation(_binary("pow")),
    "MAX": Operation(_binary("max")),
    "MULACC": Operation(_multiplied_and_added),
    "NEG": Operation(_unary("neg")),
    "RECIPROCAL": Operation(_unary("recip")),
    "SQRT": Operation(_unary("sqrt")),
    "EXP2": Operation(_unary("exp2")),
    "LOG2": Operation(_unary("log2")),
    "SIN": Operation(_unary("sin")),
    "TRUNC": Operation(_truncated),
}

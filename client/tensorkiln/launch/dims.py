"""Conversion between dims (the wire format) and launch expressions (evaluated by the launch rules)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from ..errors import DiagnosticError
from ..expr import Dim, add, floordiv, floormod, idiv, maximum, minimum, mod, mul, neg, sub, symbol, to_wire
from .evaluate import evaluate_launch
from .nodes import (
    After,
    Binary,
    BinaryOp,
    Bind,
    BitCast,
    Cast,
    Const,
    DefineVar,
    LaunchNode,
    Ternary,
    TernaryOp,
    Unary,
    UnaryOp,
    Variable,
)

_FROM_WIRE = {
    "add": BinaryOp.ADD,
    "sub": BinaryOp.SUB,
    "mul": BinaryOp.MUL,
    "max": BinaryOp.MAX,
    "idiv": BinaryOp.IDIV,
    "mod": BinaryOp.MOD,
    "floordiv": BinaryOp.FLOOR_DIV,
    "floormod": BinaryOp.FLOOR_MOD,
}

_TO_DIM = {
    BinaryOp.ADD: add,
    BinaryOp.SUB: sub,
    BinaryOp.MUL: mul,
    BinaryOp.MAX: maximum,
    BinaryOp.IDIV: idiv,
    BinaryOp.CDIV: idiv,
    BinaryOp.MOD: mod,
    BinaryOp.CMOD: mod,
    BinaryOp.FLOOR_DIV: floordiv,
    BinaryOp.FLOOR_MOD: floormod,
}


def launch_from_dim(dim: Dim, variables: Mapping[str, Variable]) -> LaunchNode:
    """The launch expression of `dim`, its symbols bounded by `variables`. KeyError when a symbol has no variable."""
    return _from_wire(to_wire(dim), variables)


def _from_wire(wire: Any, variables: Mapping[str, Variable]) -> LaunchNode:
    if isinstance(wire, int):
        return Const(wire)
    if isinstance(wire, str):
        variable = variables[wire]
        return DefineVar(variable.name, variable.min, variable.max)
    args = [_from_wire(arg, variables) for arg in wire["args"]]
    if wire["op"] == "neg":
        return Unary(UnaryOp.NEG, *args)
    if wire["op"] == "min":
        return reduce(_least, args)
    return reduce(lambda left, right: Binary(_FROM_WIRE[wire["op"]], left, right), args)


def _least(left: LaunchNode, right: LaunchNode) -> LaunchNode:
    """The lesser of two, without the overflow that `-max(-left, -right)` has at the least integer."""
    return Ternary(TernaryOp.WHERE, Binary(BinaryOp.LT, left, right), left, right)


def dim_from_launch(expr: LaunchNode) -> Dim:
    """The dim of a launch expression, for the wire.

    DiagnosticError when there is no such dim: for bit operations or comparisons on variables, or a bind of a variable
    to a non-constant.
    """
    if _is_closed(expr):
        return evaluate_launch(expr, {})
    match expr:
        case DefineVar(name):
            return symbol(name)
        case Cast(source) | BitCast(source) | After(source):
            return dim_from_launch(source)
        case Binary(kind, left, right) if kind in _TO_DIM:
            return _TO_DIM[kind](dim_from_launch(left), dim_from_launch(right))
        case Unary(UnaryOp.NEG, source):
            return neg(dim_from_launch(source))
        case Unary(UnaryOp.ABS, source):
            dim = dim_from_launch(source)
            return maximum(dim, neg(dim))
        case Unary(UnaryOp.SQUARE, source):
            dim = dim_from_launch(source)
            return mul(dim, dim)
        case Unary(UnaryOp.TRUNC | UnaryOp.FLOOR | UnaryOp.CEIL | UnaryOp.ROUND, source):
            return dim_from_launch(source)
        case Ternary(TernaryOp.MULACC, first, second, third):
            return add(mul(dim_from_launch(first), dim_from_launch(second)), dim_from_launch(third))
        case Ternary(TernaryOp.WHERE, Binary(BinaryOp.LT, left, right), second, third) if (second, third) == (
            left,
            right,
        ):
            return minimum(dim_from_launch(left), dim_from_launch(right))
        case _:
            raise DiagnosticError(f"the launch-size expression {expr.op} cannot be written as a dimension")


def _is_closed(expr: LaunchNode) -> bool:
    """Whether the expression has no free variable; a bind depends only on its value."""
    if isinstance(expr, DefineVar):
        return False
    if isinstance(expr, Bind):
        return _is_closed(expr.value)
    return isinstance(expr, Const) or (bool(expr.sources) and all(_is_closed(source) for source in expr.sources))

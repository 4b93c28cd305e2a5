"""Operators of a text on tensors, dimensions and numbers; integers are limited to 64 bits."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from ..build import Tensor
from ..expr import INT64_MAX, INT64_MIN, Expr
from ..nearest import kind_of

BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BITS: Final = 64
LONGEST: Final = 1 << 14
"""The most characters of a dimension's expression; each operation may double them."""


def binary(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """Apply a binary operator. TypeError for unsupported operands, ValueError for integers beyond 64 bits."""
    for each in (left, right):
        if not isinstance(each, Tensor | Expr | int | float):
            raise TypeError(f"{kind_of(each)} cannot be an operand of an operator")
    # Checked before computing: a power or shift of two short numbers can be arbitrarily long.
    grows = isinstance(left, int) and (kind is ast.LShift or (kind is ast.Pow and abs(left) > 1))
    if grows and isinstance(right, int) and right >= _BITS:
        raise ValueError("an integer does not fit 64 bits")
    return number(BINARY[kind](left, right))


def unary(kind: type[ast.unaryop], value: Any) -> Any:
    """Apply a unary operator. TypeError for an unsupported operand."""
    if not isinstance(value, Tensor | Expr | int | float):
        raise TypeError(f"{kind_of(value)} cannot be an operand of an operator")
    return number(UNARY[kind](value))


def compared(kind: type[ast.cmpop], left: Any, right: Any) -> Tensor:
    """Compare elementwise. TypeError when neither operand is a tensor."""
    if not (isinstance(left, Tensor) or isinstance(right, Tensor)):
        raise TypeError("a comparison is of tensors: a graph has one form for all values of its symbols")
    for each in (left, right):
        if not isinstance(each, Tensor | int | float):
            raise TypeError(f"{kind_of(each)} cannot be an operand of a comparison")
    return COMPARISONS[kind](left, right)


def number(value: Any) -> Any:
    """`value` itself. ValueError for an integer beyond 64 bits or a long dimension, TypeError for a complex number."""
    if isinstance(value, complex):
        raise TypeError("a complex number is not a value of a graph")
    if isinstance(value, int) and not INT64_MIN <= value <= 2 * INT64_MAX + 1:
        raise ValueError("an integer does not fit 64 bits")
    if is_long(value):
        raise ValueError(f"a dimension is an expression of more than {LONGEST} characters")
    return value


def is_long(value: Any) -> bool:
    """Whether it is a dimension of more than `LONGEST` characters."""
    return isinstance(value, Expr) and len(str(value)) > LONGEST

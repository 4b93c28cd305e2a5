"""Binop, unary, ternary: equal dtypes, equal shapes, scalars mix with anything."""

from __future__ import annotations

from typing import Final

from ..dtypes import DType
from ..expr import Dim
from ..nodes import Binop, BinopKind, Ternary, TernaryKind, Unary, UnaryKind
from ..types import TensorType
from .legality import BITS, CONDITIONS, FLOATS, INTEGERS, NUMBERS, STORED, VALUES, advice
from .scope import Scope

BINOP_DTYPES: Final[dict[BinopKind, frozenset[DType]]] = {
    BinopKind.ADD: VALUES,
    BinopKind.MUL: VALUES,
    BinopKind.SUB: NUMBERS,
    BinopKind.DIV: NUMBERS,
    BinopKind.IDIV: INTEGERS,
    BinopKind.FDIV: FLOATS,
    BinopKind.MOD: NUMBERS,
    BinopKind.POW: NUMBERS,
    BinopKind.MAX: VALUES,
    BinopKind.MIN: VALUES,
    BinopKind.CMPLT: VALUES,
    BinopKind.CMPNE: VALUES,
    BinopKind.XOR: BITS,
    BinopKind.OR: BITS,
    BinopKind.AND: BITS,
    BinopKind.SHL: INTEGERS,
    BinopKind.SHR: INTEGERS,
}
UNARY_DTYPES: Final[dict[UnaryKind, frozenset[DType]]] = {
    UnaryKind.NEG: VALUES,
    UnaryKind.LOG2: FLOATS,
    UnaryKind.EXP2: FLOATS,
    UnaryKind.SIN: FLOATS,
    UnaryKind.SQRT: FLOATS,
    UnaryKind.RECIP: FLOATS,
    UnaryKind.TRUNC: FLOATS,
}
COMPARISONS: Final = frozenset({BinopKind.CMPLT, BinopKind.CMPNE})
SHIFTS: Final = frozenset({BinopKind.SHL, BinopKind.SHR})


def mixed_shape(scope: Scope, left: tuple[Dim, ...], right: tuple[Dim, ...], *fields: str) -> tuple[Dim, ...]:
    """The common shape of two operands: a scalar takes the other's shape, two tensors must have the same shape."""
    if left == right or not right:
        return left
    if not left:
        return right
    scope.require_same_shape(left, right, "the operands have different shapes (expand one of them first)", *fields)
    return left


def binop(node: Binop, scope: Scope) -> TensorType:
    a, b, op = scope.types[node.a_var], scope.types[node.b_var], node.op
    if a.dtype not in BINOP_DTYPES[op]:
        scope.fail(f"{op} does not take {a.dtype}{advice(a.dtype)}", "op", "a_var")
    if b.dtype is not a.dtype and not (op in SHIFTS and b.dtype is DType.UINT32):
        scope.fail(f"the operands have different dtypes: {a.dtype} and {b.dtype} (cast one of them)", "a_var", "b_var")
    if op in COMPARISONS:
        if node.dtype not in CONDITIONS:
            scope.fail(f"the result of a comparison is bool or uint8, but the node says {node.dtype}", "dtype")
    elif node.dtype is not a.dtype:
        scope.require_dtype(node.dtype, a.dtype)
    if a is b and node.dtype is a.dtype:
        return a
    return scope.type(node.dtype, mixed_shape(scope, a.shape, b.shape, "a_var", "b_var"))


def unary(node: Unary, scope: Scope) -> TensorType:
    operand = scope.types[node.in_var]
    if operand.dtype not in UNARY_DTYPES[node.op]:
        scope.fail(f"{node.op} does not take {operand.dtype}{advice(operand.dtype)}", "op", "in_var")
    scope.require_dtype(node.dtype, operand.dtype)
    return operand


def ternary(node: Ternary, scope: Scope) -> TensorType:
    a, b, c = scope.types[node.a_var], scope.types[node.b_var], scope.types[node.c_var]
    if b.dtype not in (STORED if node.op is TernaryKind.WHERE else VALUES):
        scope.fail(f"{node.op} does not take {b.dtype}{advice(b.dtype)}", "op", "b_var")
    if b.dtype is not c.dtype:
        scope.fail(f"the operands have different dtypes: {b.dtype} and {c.dtype} (cast one of them)", "b_var", "c_var")
    if node.op is TernaryKind.WHERE:
        if a.dtype not in CONDITIONS:
            scope.fail(f"the condition of where is bool or uint8, here {a.dtype}", "a_var")
    elif a.dtype is not b.dtype:
        scope.fail(f"the operands have different dtypes: {a.dtype} and {b.dtype} (cast one of them)", "a_var", "b_var")
    scope.require_dtype(node.dtype, b.dtype)
    both = mixed_shape(scope, b.shape, c.shape, "b_var", "c_var")
    return scope.type(b.dtype, mixed_shape(scope, a.shape, both, "a_var", "b_var", "c_var"))


RULES = {Binop: binop, Unary: unary, Ternary: ternary}

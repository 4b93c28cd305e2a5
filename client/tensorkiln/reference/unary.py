"""Unary operations, and the two ternary ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..nodes import BinopKind, Ternary, TernaryKind, Unary, UnaryKind
from .binop import apply_binop
from .precision import Array, arithmetic, rounded
from .scope import Evaluator, Scope

TRANSCENDENTAL: dict[UnaryKind, Callable[[Array], Array]] = {
    UnaryKind.LOG2: np.log2,
    UnaryKind.EXP2: np.exp2,
    UnaryKind.SIN: np.sin,
}
EXACT: dict[UnaryKind, Callable[[Array], Array]] = {
    UnaryKind.NEG: np.negative,
    UnaryKind.SQRT: np.sqrt,
    UnaryKind.RECIP: np.reciprocal,
    UnaryKind.TRUNC: np.trunc,
}


def evaluate_unary(node: Unary, scope: Scope) -> Array:
    """`op(x)`; log2, exp2 and sin are computed in long double and rounded once. Not of bool is its negation."""
    x = scope.read(node.in_var)
    dtype = scope.dtype(node.in_var)
    if dtype.is_bool:
        return np.logical_not(x)
    if dtype.is_integer:
        return np.negative(x)
    if node.op in TRANSCENDENTAL:
        return rounded(TRANSCENDENTAL[node.op](x.astype(np.longdouble)), dtype)
    return rounded(EXACT[node.op](x.astype(arithmetic(dtype))), dtype)


def evaluate_ternary(node: Ternary, scope: Scope) -> Array:
    """`a ? b : c`, both sides evaluated; or `a * b + c`, the product rounded before the sum."""
    a, b, c = (scope.read(var) for var in (node.a_var, node.b_var, node.c_var))
    if node.op is TernaryKind.WHERE:
        return np.where(a != 0, b, c)
    dtype = scope.dtype(node.a_var)
    return apply_binop(BinopKind.ADD, apply_binop(BinopKind.MUL, a, b, dtype), c, dtype)


EVALUATORS: dict[type, Evaluator] = {Unary: evaluate_unary, Ternary: evaluate_ternary}

"""Const_scalar and vconst: every literal is an element of the dtype."""

from __future__ import annotations

from math import prod

from ..nodes import ConstScalar, Vconst
from ..nodes.literals import LiteralError, parse_literal, parse_literals
from ..types import TensorType
from .legality import STORED
from .scope import Scope, shape_text


def const_scalar(node: ConstScalar, scope: Scope) -> TensorType:
    try:
        parse_literal(node.value, node.dtype)
    except LiteralError as error:
        scope.fail(str(error), "value")
    return scope.type(node.dtype, ())


def vconst(node: Vconst, scope: Scope) -> TensorType:
    if node.dtype not in STORED:
        scope.fail(f"vconst does not hold {node.dtype}", "dtype")
    try:
        parse_literals(node.values, node.dtype)
    except LiteralError as error:
        scope.fail(str(error), "values")
    shape = scope.stated_shape(node.out_var)
    if shape is None:
        return scope.type(node.dtype, (len(node.values),))
    sizes = [dim for dim in shape if isinstance(dim, int)]
    if len(sizes) != len(shape) or prod(sizes) != len(node.values):
        scope.fail(f"{len(node.values)} values do not fill the shape {shape_text(shape)}", "values")
    return scope.type(node.dtype, shape)


RULES = {ConstScalar: const_scalar, Vconst: vconst}

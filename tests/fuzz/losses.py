"""What each computing op may lose: the bound of its result from the values and the bounds of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.nodes import (
    Binop,
    BinopKind,
    Bitcast,
    Cast,
    Contract,
    ReduceAxis,
    ReduceKind,
    Scatter,
    ScatterKind,
    Ternary,
    TernaryKind,
    Unary,
    UnaryKind,
    Wmma,
)
from tensorkiln.reference.precision import Array
from tensorkiln.reference.scope import Scope
from tests.numerics.cases.tolerance import EPSILON

Loss = Callable[[Any, Scope, Scope], Array]
"""From a node, the values and the bounds to the bound of the node's value."""

_TINY = {DType.FLOAT16: 2.0**-24, DType.BFLOAT16: 2.0**-133, DType.FLOAT32: 2.0**-149, DType.FLOAT64: 2.0**-1074}
"""The least positive number of each float format."""
_STEPS = {UnaryKind.EXP2: 3.0, UnaryKind.LOG2: 3.0, UnaryKind.SIN: 3.0}
_POW_STEPS = 17.0


def steps(dtype: DType, value: Array, count: float = 1.0) -> Array:
    """`count` representable steps at each value; 0 of what is no float."""
    if not dtype.is_float:
        return np.zeros(value.shape)
    return count * (EPSILON[dtype] * np.abs(value.astype(np.float64)) + _TINY[dtype])


def _rounded(dtype: DType, value: Array, lost: Array) -> Array:
    """`lost`, and a step more where that is anything at all: operands that are equal are rounded alike."""
    return np.where(lost > 0, lost + steps(dtype, value), 0.0)


def _wide(values: Scope, var: int) -> Array:
    return values.read(var).astype(np.float64)


def _product(a: Array, b: Array, lost_a: Array, lost_b: Array) -> Array:
    return _times(np.abs(a), lost_b) + _times(np.abs(b), lost_a) + _times(lost_a, lost_b)


def _times(a: Array, b: Array) -> Array:
    """0 by anything is 0."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _quotient(a: Array, b: Array, lost_a: Array, lost_b: Array) -> Array:
    nearest = np.abs(b) - lost_b
    lost = np.where(nearest > 0, (lost_a + _times(np.abs(a / b), lost_b)) / nearest, np.inf)
    return np.where((lost_a == 0) & (lost_b == 0) & (b != 0), 0.0, lost)


def _wholes(x: Array, lost: Array) -> Array:
    """How far apart whole parts may be: 1 at least near a whole number, even when the sum with `lost` rounds to it."""
    return np.maximum(np.trunc(x + lost) - np.trunc(x - lost), np.abs(x - np.rint(x)) <= lost)


def binop(node: Binop, values: Scope, bounds: Scope) -> Array:
    a, b = _wide(values, node.a_var), _wide(values, node.b_var)
    lost_a, lost_b = bounds.read(node.a_var), bounds.read(node.b_var)
    dtype, result = values.dtype(node.a_var), values.read(node.out_var)
    both = lost_a + lost_b
    match node.op:
        case BinopKind.CMPLT | BinopKind.CMPNE:
            return ((both > 0) & ~(np.abs(a - b) > both)).astype(np.float64)
        case _ if dtype.is_bool:
            return np.maximum(lost_a, lost_b)
        case BinopKind.ADD | BinopKind.SUB:
            return _rounded(dtype, result, both)
        case BinopKind.MUL:
            return _rounded(dtype, result, _product(a, b, lost_a, lost_b))
        case BinopKind.MAX | BinopKind.MIN:
            return np.maximum(lost_a, lost_b)
        case BinopKind.DIV | BinopKind.FDIV if dtype.is_float:
            return _rounded(dtype, result, _quotient(a, b, lost_a, lost_b))
        case BinopKind.POW if dtype.is_float:
            relative = np.abs(b) * lost_a / np.maximum(np.abs(a) - lost_a, 0) + np.abs(np.log(np.abs(a))) * lost_b
            relative = np.where(both > 0, relative, 0.0)
            return np.abs(result.astype(np.float64)) * np.expm1(relative) + steps(dtype, result, _POW_STEPS)
        case _:
            return np.where(both > 0, np.inf, 0.0)


def unary(node: Unary, values: Scope, bounds: Scope) -> Array:
    x, lost = _wide(values, node.in_var), bounds.read(node.in_var)
    dtype, result = values.dtype(node.in_var), values.read(node.out_var)
    y = result.astype(np.float64)
    own = steps(dtype, result, _STEPS.get(node.op, 0.0))
    match node.op:
        case UnaryKind.NEG:
            return lost
        case UnaryKind.EXP2:
            return np.abs(y) * np.expm1(lost * np.log(2.0)) + own
        case UnaryKind.LOG2:
            return np.where(x > lost, -np.log1p(-lost / x) / np.log(2.0), np.inf) + own
        case UnaryKind.SIN:
            return lost + own
        case UnaryKind.SQRT:
            roots = np.sqrt(x) + np.sqrt(np.maximum(x - lost, 0))
            return _rounded(dtype, result, np.where(x >= lost, _times(lost, 1 / roots), np.inf))
        case UnaryKind.RECIP:
            return _rounded(dtype, result, _quotient(np.ones(x.shape), x, np.zeros(x.shape), lost))
        case UnaryKind.TRUNC:
            return np.where(lost > 0, _wholes(x, lost), 0.0)


def ternary(node: Ternary, values: Scope, bounds: Scope) -> Array:
    a, b, c = (_wide(values, var) for var in (node.a_var, node.b_var, node.c_var))
    lost_a, lost_b, lost_c = (bounds.read(var) for var in (node.a_var, node.b_var, node.c_var))
    if node.op is TernaryKind.WHERE:
        either = np.abs(b - c) + lost_b + lost_c
        return np.where(lost_a > 0, either, np.where(a != 0, lost_b, lost_c))
    dtype = values.dtype(node.a_var)
    product = _rounded(dtype, a * b, _product(a, b, lost_a, lost_b))
    return _rounded(dtype, values.read(node.out_var), product + lost_c)


def cast(node: Cast, values: Scope, bounds: Scope) -> Array:
    x, lost = _wide(values, node.in_var), bounds.read(node.in_var)
    source, target = values.dtype(node.in_var), node.target_dtype
    if target.is_bool:
        return ((lost > 0) & (np.abs(x) <= lost)).astype(np.float64)
    if target.is_float:
        return _rounded(target, values.read(node.out_var), lost)
    if source.is_bool:
        return lost
    fits = (x - lost >= float(target.min)) & (x + lost <= float(target.max))
    whole = _wholes(x, lost) if source.is_float else lost
    return np.where(lost > 0, np.where(fits, whole, np.inf), 0.0)


def bitcast(node: Bitcast, values: Scope, bounds: Scope) -> Array:
    lost = bounds.read(node.in_var)
    return np.full(values.read(node.out_var).shape, np.inf if np.any(lost > 0) else 0.0)


def _summed(dtype: DType, terms: int, total: Array, lost: Array, result: Array) -> Array:
    """Of a sum in any order, in float32 at least: half a step of a partial sum for each term, and its last rounding.

    `total` is the sum of the terms' magnitudes, `lost` that of their bounds. A product may be kept wider than it is.
    """
    if not dtype.is_float or terms == 1:
        return _rounded(dtype, result, lost)
    accumulated = EPSILON[DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32] * (terms / 2 + 1)
    return np.where(total > 0, lost + accumulated * (total + lost) + steps(dtype, result), lost)


def reduce_axis(node: ReduceAxis, values: Scope, bounds: Scope) -> Array:
    x, lost = _wide(values, node.in_var), bounds.read(node.in_var)
    dtype, result = values.dtype(node.in_var), values.read(node.out_var)
    terms = int(np.prod([x.shape[axis] for axis in node.axes]))

    def over(contents: Array, reduce: np.ufunc, initial: float) -> Array:
        return reduce.reduce(contents, axis=tuple(node.axes), initial=initial).reshape(result.shape)

    if node.reduce_op_kind is ReduceKind.MAX or dtype.is_bool:
        return over(lost, np.maximum, 0.0)
    if node.reduce_op_kind is ReduceKind.SUM:
        return _summed(dtype, terms, over(np.abs(x), np.add, 0.0), over(lost, np.add, 0.0), result)
    grown = over(np.abs(x) + lost, np.multiply, 1.0) - over(np.abs(x), np.multiply, 1.0)
    if not dtype.is_float:
        return np.where(over(lost, np.add, 0.0) > 0, np.inf, 0.0)
    return grown + steps(dtype, result, terms + 1.0)


def combined_at_places(node: Scatter, values: Scope, bounds: Scope) -> Array:
    """The bound of a scatter that combines: 0 where its operands are exact, since their order is fixed."""
    index, result = values.read(node.indices_var), values.read(node.out_var)
    dtype = values.dtype(node.out_var)
    if np.any(bounds.read(node.indices_var) > 0):
        return np.full(result.shape, np.inf)
    inside = (index >= 0) & (index < result.shape[node.axis])
    places = [np.indices(index.shape)[axis][inside] for axis in range(index.ndim)]
    places[node.axis] = index[inside].astype(np.int64)

    def over(scope: Scope, combine: np.ufunc) -> Array:
        made = np.zeros(result.shape) if node.init_var is None else np.abs(_wide(scope, node.init_var))
        combine.at(made, tuple(places), np.abs(_wide(scope, node.updates_var))[inside])
        return made

    lost = over(bounds, np.add)
    if node.reduction is ScatterKind.MUL:
        return np.where(lost > 0, np.inf, 0.0)
    if node.reduction is not ScatterKind.ADD or dtype.is_bool:
        return over(bounds, np.maximum)
    found = _summed(dtype, index.shape[node.axis] + 1, over(values, np.add), lost, result)
    return np.where(lost > 0, found, 0.0)


def contract(node: Contract, values: Scope, bounds: Scope) -> Array:
    (a, b), (lost_a, lost_b) = ([np.abs(_wide(values, v)) for v in node.in_vars], map(bounds.read, node.in_vars))
    axes = ([i for i, _ in node.contraction_axes], [j for _, j in node.contraction_axes])

    def product(left: Array, right: Array) -> Array:
        return np.asarray(np.tensordot(left, right, axes=axes))

    terms = int(np.prod([a.shape[axis] for axis in axes[0]]))
    lost = product(a, lost_b) + product(lost_a, b) + product(lost_a, lost_b)
    return _summed(values.dtype(node.out_var), terms, product(a, b), lost, values.read(node.out_var))


def wmma(node: Wmma, values: Scope, bounds: Scope) -> Array:
    a, b, c = (np.abs(_wide(values, var)) for var in (node.a_var, node.b_var, node.c_var))
    lost_a, lost_b, lost_c = (bounds.read(var) for var in (node.a_var, node.b_var, node.c_var))
    lost = a @ lost_b + lost_a @ b + lost_a @ lost_b + lost_c
    return _summed(values.dtype(node.c_var), a.shape[1] + 1, a @ b + c, lost, values.read(node.out_var))


LOSSES: dict[str, Loss] = {
    "binop": binop,
    "unary": unary,
    "ternary": ternary,
    "cast": cast,
    "bitcast": bitcast,
    "reduce_axis": reduce_axis,
    "contract": contract,
    "wmma": wmma,
}

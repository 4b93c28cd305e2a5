"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtypes import DType
from ..nodes import ReduceAxis, ReduceKind
from .precision import Array, accumulator, rounded
from .scope import Evaluator, Scope

Axes = tuple[int, ...]


def evaluate_reduce_axis(node: ReduceAxis, scope: Scope) -> Array:
    """Sum, product or maximum over `axes`, in the shape that the out var has (kept or squeezed axes).

    Over no axes it is `in_var` as it is, the sign of a zero included. Integers wrap. A float sum or product is
    accumulated in float64 (long double for float64) and rounded once to the node's dtype: the order is free, so
    compiled code may differ by what its own accumulator loses.
    """
    dtype, x = scope.dtype(node.in_var), scope.read(node.in_var)
    reduced = REDUCTIONS[node.reduce_op_kind](x, node.axes, dtype) if node.axes else x
    return reduced.reshape(scope.shape(node.out_var))


def reduce_sum(x: Array, axes: Axes, dtype: DType) -> Array:
    """Of bool: whether any is true."""
    if dtype.is_bool:
        return np.logical_or.reduce(x, axis=axes, keepdims=True)
    return rounded(np.add.reduce(x.astype(accumulator(dtype)), axis=axes, keepdims=True), dtype)


def reduce_prod(x: Array, axes: Axes, dtype: DType) -> Array:
    """Of bool: whether all are true."""
    if dtype.is_bool:
        return np.logical_and.reduce(x, axis=axes, keepdims=True)
    return rounded(np.multiply.reduce(x.astype(accumulator(dtype)), axis=axes, keepdims=True), dtype)


def reduce_max(x: Array, axes: Axes, dtype: DType) -> Array:
    """Of nothing: -inf, the least integer, false. NaN when any is NaN; -0 only when every zero is."""
    if dtype.is_bool:
        return np.logical_or.reduce(x, axis=axes, keepdims=True)
    wide = x.astype(accumulator(dtype))
    greatest = np.maximum.reduce(wide, axis=axes, keepdims=True, initial=dtype.min)
    if not dtype.is_float:
        return greatest
    has_positive_zero = np.logical_or.reduce((wide == 0) & ~np.signbit(wide), axis=axes, keepdims=True)
    zero = np.where(has_positive_zero, 0.0, -0.0)
    return rounded(np.where(greatest == 0, zero, greatest), dtype)


REDUCTIONS: dict[ReduceKind, Callable[[Array, Axes, DType], Array]] = {
    ReduceKind.SUM: reduce_sum,
    ReduceKind.PROD: reduce_prod,
    ReduceKind.MAX: reduce_max,
}

EVALUATORS: dict[type, Evaluator] = {ReduceAxis: evaluate_reduce_axis}

"""Constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..nodes import ConstScalar, Device, Unique, Vconst
from ..nodes.fields import Scalar
from .precision import Array, rounded
from .scope import Evaluator, Scope


def literals(values: Sequence[Scalar], dtype: DType) -> Array:
    """JSON literals as a vector: a float is read as float64 and rounded once; inf, -inf and nan are strings."""
    if dtype is DType.UNIT:
        return np.zeros(len(values), dtype.numpy)
    if dtype.wide.is_float:
        return rounded(np.array([0.0 if value is None else float(value) for value in values], np.float64), dtype)
    return np.array(values, dtype.numpy)


def evaluate_const_scalar(node: ConstScalar, scope: Scope) -> Array:
    return literals([node.value], node.dtype).reshape(())


def evaluate_vconst(node: Vconst, scope: Scope) -> Array:
    """Row-major, in the shape that the out var has."""
    return literals(node.values, node.dtype).reshape(scope.shape(node.out_var))


def evaluate_unique(node: Unique, scope: Scope) -> Array:
    return literals([node.id if node.dtype.is_integer else None], node.dtype).reshape(())


def evaluate_device(node: Device, scope: Scope) -> Array:
    """A marker; its value, where it can be read, is 0."""
    return literals([0 if node.dtype.is_integer else None], node.dtype).reshape(())


EVALUATORS: dict[type, Evaluator] = {
    ConstScalar: evaluate_const_scalar,
    Vconst: evaluate_vconst,
    Unique: evaluate_unique,
    Device: evaluate_device,
}

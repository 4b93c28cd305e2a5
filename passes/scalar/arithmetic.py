"""+, -, *, floating division, maximum and minimum."""

from __future__ import annotations

from collections.abc import Callable

from dialect.mlir import arith
from tensorkiln.dtypes import DType

from .number import Number


def add(dtype: DType, a: Number, b: Number) -> Number:
    """a + b; of bool, whether either is true."""
    return a | b if dtype.is_bool else a + b


def subtract(dtype: DType, a: Number, b: Number) -> Number:
    """a - b."""
    return a - b


def multiply(dtype: DType, a: Number, b: Number) -> Number:
    """a * b; of bool, whether both are true."""
    return a & b if dtype.is_bool else a * b


def divide_floats(dtype: DType, a: Number, b: Number) -> Number:
    """a / b by IEEE 754: x/0 is an infinity, 0/0 NaN."""
    return a / b


def maximum(dtype: DType, a: Number, b: Number) -> Number:
    """NaN when either is, and +0 above -0."""
    return _extreme(dtype, a, b, arith.maximumf, arith.maxsi, arith.maxui)


def minimum(dtype: DType, a: Number, b: Number) -> Number:
    """NaN when either is, and -0 below +0."""
    return _extreme(dtype, a, b, arith.minimumf, arith.minsi, arith.minui)


def _extreme(
    dtype: DType,
    a: Number,
    b: Number,
    floats: Callable[..., object],
    signed: Callable[..., object],
    rest: Callable[..., object],
) -> Number:
    emit = floats if dtype.is_float else signed if dtype.is_signed else rest
    return Number(emit(a.value, b.value), a.form)


def logical_and(dtype: DType, a: Number, b: Number) -> Number:
    return a & b


def logical_or(dtype: DType, a: Number, b: Number) -> Number:
    return a | b


def exclusive_or(dtype: DType, a: Number, b: Number) -> Number:
    return a ^ b

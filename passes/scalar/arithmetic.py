"""Sums, products, extremes and comparisons, by dtype."""

from __future__ import annotations

import math

from dialect.mlir import arith
from tensorkiln.dtypes import DType

from .number import Number


def add(dtype: DType, a: Number, b: Number) -> Number:
    """a + b; logical or for bool."""
    return a | b if dtype.is_bool else a + b


def multiply(dtype: DType, a: Number, b: Number) -> Number:
    """a * b; logical and for bool."""
    return a & b if dtype.is_bool else a * b


def maximum(dtype: DType, a: Number, b: Number) -> Number:
    """The larger; NaN if either is, and +0 above -0."""
    emit = arith.maximumf if dtype.is_float else arith.maxsi if dtype.is_signed else arith.maxui
    return Number(emit(a.value, b.value), a.form)


def minimum(dtype: DType, a: Number, b: Number) -> Number:
    """The smaller; NaN if either is, and -0 below +0."""
    emit = arith.minimumf if dtype.is_float else arith.minsi if dtype.is_signed else arith.minui
    return Number(emit(a.value, b.value), a.form)


def extreme_beside(kind: str, x: Number, known: float) -> Number | None:
    """The `max` or `min` of a float and a constant by one comparison, which NaN passes.

    None if the constant is NaN, or the zero that the other zero would have to replace.
    """
    is_beaten = math.isnan(known) or (known == 0 and (math.copysign(1.0, known) < 0) == (kind == "max"))
    if is_beaten:
        return None
    beyond = arith.CmpFPredicate.UGT if kind == "max" else arith.CmpFPredicate.ULT
    limit = x.literal(known)
    return Number(arith.select(arith.cmpf(beyond, x.value, limit.value), x.value, limit.value), x.form)


def less(dtype: DType, a: Number, b: Number) -> Number:
    """a < b, as i1: signed, unsigned or ordered by the dtype; false before true; false for NaN."""
    return a.less(b) if dtype.is_float or dtype.is_signed else a.below(b)

"""Comparisons, as i1."""

from __future__ import annotations

from tensorkiln.dtypes import DType

from .number import Number


def less(dtype: DType, a: Number, b: Number) -> Number:
    """a < b: signed, unsigned or ordered by the dtype; false before true; false for NaN."""
    return a.less(b) if dtype.is_float or dtype.is_signed else a.below(b)


def differs(dtype: DType, a: Number, b: Number) -> Number:
    """a != b; true for NaN."""
    return a.differs(b)

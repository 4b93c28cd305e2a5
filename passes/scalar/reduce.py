"""The identity of a reduction, and its combination with one more value."""

from __future__ import annotations

from dialect.mlir import arith, ir
from tensorkiln.dtypes import DType

from .arithmetic import add, maximum, multiply
from .form import form_of
from .number import constant
from .traits import PORTABLE, Traits
from .working import load, store


def reduce_identity(kind: str, dtype: DType) -> ir.Value:
    """0 for sum, 1 for prod; for max -inf, the least integer or false."""
    return constant(dtype, {"sum": 0, "prod": 1, "max": dtype.min}[kind])


def reduce_combine(
    kind: str, dtype: DType, accumulator: ir.Value, x: ir.Value, *, traits: Traits = PORTABLE
) -> ir.Value:
    """The accumulator combined with x, both of `dtype`; for bool, sum and max are or, prod is and.

    Sums and products of float32 and float64 may be reassociated: the order of a reduction is unspecified, and vector
    accumulators need it. max propagates NaN and puts +0 above -0. A 16-bit accumulator would be rounded at every step;
    accumulate those dtypes in float32.
    """
    if kind in ("sum", "prod") and form_of(dtype).bits >= 32 and dtype.is_float:
        emit = arith.addf if kind == "sum" else arith.mulf
        return emit(accumulator, x, fastmath=arith.FastMathFlags.reassoc)
    combine = {"sum": add, "prod": multiply, "max": maximum}[kind]
    left, right = load(traits, dtype, accumulator), load(traits, dtype, x)
    return store(traits, dtype, combine(dtype, left, right))

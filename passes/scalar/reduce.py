"""What a reduction starts from and how it takes in one more value."""

from __future__ import annotations

from dialect.mlir import arith, ir
from tensorkiln.dtypes import DType

from .arithmetic import add, maximum, multiply
from .constant import constant
from .form import form_of
from .traits import PORTABLE, Traits
from .working import load, store


def reduce_identity(kind: str, dtype: DType) -> ir.Value:
    """0 for sum, 1 for prod; for max -inf, the least integer or false."""
    return constant(dtype, {"sum": 0, "prod": 1, "max": dtype.min}[kind])


def reduce_combine(
    kind: str, dtype: DType, accumulator: ir.Value, x: ir.Value, *, traits: Traits = PORTABLE
) -> ir.Value:
    """The accumulator with x taken in, both of `dtype`; of bool, sum and max are or, prod is and.

    Sums and products of float32 and float64 may be reassociated, which the order-free contract of a reduction allows
    and vector accumulators need. max propagates NaN and puts +0 above -0. An accumulator of a 16-bit float would be
    rounded at every step: accumulate those as float32.
    """
    if kind in ("sum", "prod") and form_of(dtype).bits >= 32 and dtype.is_float:
        emit = arith.addf if kind == "sum" else arith.mulf
        return emit(accumulator, x, fastmath=arith.FastMathFlags.reassoc)
    combine = {"sum": add, "prod": multiply, "max": maximum}[kind]
    left, right = load(traits, dtype, accumulator), load(traits, dtype, x)
    return store(traits, dtype, combine(dtype, left, right))

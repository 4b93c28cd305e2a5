"""Integer powers by squaring, modulo the width. A negative exponent gives the truncated reciprocal."""

from __future__ import annotations

from dialect.mlir import arith, ir, math, scf
from tensorkiln.dtypes import DType

from .form import I64
from .number import Number, choose


def power_of_integers(dtype: DType, base: Number, exponent: Number) -> Number:
    """base**exponent wrapped; for a negative exponent 0, except 1 for base 1 and plus or minus 1 for base -1."""
    power = _looped(dtype, base, exponent) if base.form == I64 else _unrolled(dtype, base, exponent)
    if not dtype.is_signed:
        return power
    is_odd = (exponent & 1).differs(0)
    of_minus_one = choose(is_odd, base.literal(-1), 1)
    reciprocal = choose(base.equals(-1), of_minus_one, choose(base.equals(1), base.literal(1), 0))
    return choose(exponent.less(0), reciprocal, power)


def _unrolled(dtype: DType, base: Number, exponent: Number) -> Number:
    """One step per bit of the widest exponent: lanes differ in their exponents, but run together."""
    result, square = base.literal(1), base
    for bit in range(base.form.bits - 1 if dtype.is_signed else base.form.bits):
        if bit:
            square = square * square
        result = choose((exponent & (1 << bit)).differs(0), result * square, result)
    return result


def _looped(dtype: DType, base: Number, exponent: Number) -> Number:
    """One step per bit of this exponent: few vector units multiply 64 bits, so vectorising would gain nothing."""
    magnitude = choose(exponent.less(0), 0, exponent) if dtype.is_signed else exponent
    index = ir.IndexType.get()
    steps = 64 - Number(math.ctlz(magnitude.value), I64)
    zero, one = (arith.ConstantOp(index, ir.IntegerAttr.get(index, n)).result for n in (0, 1))
    start = [base.literal(1).value, base.value]
    loop = scf.ForOp(zero, arith.index_cast(index, steps.value), one, start)
    with ir.InsertionPoint(loop.body):
        result, square = (Number(value, I64) for value in loop.inner_iter_args)
        bit = Number(arith.index_cast(I64.type, loop.induction_variable), I64)
        is_set = ((magnitude >> bit) & 1).differs(0)
        scf.YieldOp([choose(is_set, result * square, result).value, (square * square).value])
    return Number(loop.results[0], I64)

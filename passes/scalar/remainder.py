"""The remainder of floats, C's fmod: x - trunc(x / y) * y exactly, with the sign of x.

It is always representable, but the quotient may have over a thousand bits, so it is subtracted in pieces. LLVM would
call fmod.
"""

from __future__ import annotations

from dialect.mlir import arith, ir, scf
from tensorkiln.dtypes import DType

from .exp2 import scaled
from .form import F32, F64, I64
from .number import Number, choose

# A piece of the quotient has 29 bits: with the 24 of y that makes 53, so the product is exact in float64.
_PIECE = 29
# float32 spans 2**-149 .. 2**128: the quotient has at most 277 bits.
_PIECES = 10


def remainder_of_floats(dtype: DType, x: Number, y: Number) -> Number:
    """fmod(x, y): NaN if y = 0, x is infinite, or either is NaN; x if y is infinite."""
    size, modulus = x.absolute(), y.absolute()
    finite = _of_singles(size, modulus) if x.form == F32 else _of_doubles(size, modulus)
    infinity = float("inf")
    is_invalid = modulus.equals(0) | size.equals(infinity) | x.is_nan() | y.is_nan()
    whole = choose(size.less(modulus), size, finite)
    positive = choose(is_invalid, float("nan"), whole)
    sign = x.bits() & (1 << (x.form.bits - 1))
    return (positive.bits() | sign).reinterpreted(x.form)


def _of_singles(size: Number, modulus: Number) -> Number:
    """Long division in float64, always ten pieces: without branches, so it vectorises.

    With m = y * 2**k, the multiple nearest to r is exact, and so is the rest, at most m / 2 away from 0.
    """
    rest, unit = size.widened(F64), modulus.widened(F64)
    for piece in reversed(range(_PIECES)):
        step = unit * 2.0 ** (_PIECE * piece)
        # Adding 1.5 * 2**52 rounds to an integer; below 2**51 that is nearest.
        quotient = (rest / step + _ROUNDER) - _ROUNDER
        rest = rest - quotient * step
        rest = choose(rest.less(0.0), rest + step, rest)
    return rest.narrowed(F32)


_ROUNDER = 1.5 * 2.0**52


def _of_doubles(size: Number, modulus: Number) -> Number:
    """Long division of the significands as integers, 11 bits per iteration: mostly one iteration, at most 191."""
    significand, exponent = _decomposed(size)
    divisor, least = _decomposed(modulus)
    divisor = choose(divisor.equals(0), 1, divisor)
    index = ir.IndexType.get()
    shift = exponent - least
    zero, step = (arith.ConstantOp(index, ir.IntegerAttr.get(index, n)).result for n in (0, 11))
    turns = choose(shift.less(0), 0, shift)
    first = Number(arith.remui(significand.value, divisor.value), I64)
    loop = scf.ForOp(zero, arith.index_cast(index, turns.value), step, [first.value])
    with ir.InsertionPoint(loop.body):
        left = turns - Number(arith.index_cast(I64.type, loop.induction_variable), I64)
        amount = choose(left.less(11), left, 11)
        shifted = Number(loop.inner_iter_args[0], I64) << amount
        scf.YieldOp([arith.remui(shifted.value, divisor.value)])
    rest = Number(loop.results[0], I64).to_float(F64, signed=True)
    return scaled(rest, least)


def _decomposed(size: Number) -> tuple[Number, Number]:
    """(m, e) with size = m * 2**e, m below 2**53; denormals have the least normal exponent."""
    pattern = size.bits()
    field = pattern >> F64.fraction
    fraction = pattern & ((1 << F64.fraction) - 1)
    is_normal = field.differs(0)
    significand = choose(is_normal, fraction | (1 << F64.fraction), fraction)
    return significand, choose(is_normal, field, 1) - (F64.bias + F64.fraction)

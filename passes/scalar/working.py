"""The form in which a dtype is computed, and conversions to and from it.

The 16-bit floats are computed in float32: its 24 bits are at least 2 * 11 + 2, so for + - * / and the square root the
second rounding never changes the first (S. A. Figueroa, "When is double rounding innocuous?", 1995).
"""

from __future__ import annotations

from dialect.mlir import ir
from tensorkiln.dtypes import DType

from .form import BF16, F16, F32, F64, Form, form_of
from .half import bfloat_to_single, half_to_single, single_to_bfloat, single_to_half
from .narrow import narrowed, widened
from .number import Number, choose
from .traits import Traits


def load(traits: Traits, dtype: DType, value: ir.Value) -> Number:
    """A value of `dtype` in the form in which it is computed."""
    form, number = form_of(dtype), held(dtype, value)
    if dtype.is_narrow:
        return widened(dtype, number)
    if form == F16:
        return half_to_single(traits, number)
    return bfloat_to_single(number) if form == BF16 else number


def held(dtype: DType, value: ir.Value) -> Number:
    """A value of `dtype`, or a vector of them, in the form that holds it."""
    lanes = ir.VectorType(value.type).shape[0] if isinstance(value.type, ir.VectorType) else 0
    return Number(value, form_of(dtype).over(lanes))


def store(traits: Traits, dtype: DType, number: Number) -> ir.Value:
    """A float in any form, or an integer in its own, as a value of `dtype`; a float is rounded once.

    For a narrow integer dtype, the integer is in the form of the wide dtype.
    """
    if dtype.is_narrow:
        wide = _to_single_for(number, dropped_bits=42) if dtype.wide.is_float else number
        return narrowed(dtype, wide).value
    return _to_form(traits, number, form_of(dtype)).value


def _to_form(traits: Traits, number: Number, form: Form) -> Number:
    if number.form.over(0) == form:
        return number
    if form == F16:
        return single_to_half(traits, _to_single_for(number, dropped_bits=29))
    if form == BF16:
        return single_to_bfloat(_to_single_for(number, dropped_bits=42))
    return number.widened(form) if form == F64 else number.narrowed(form)


def _to_single_for(number: Number, *, dropped_bits: int) -> Number:
    """A float32 that rounds to the narrow form as `number` does.

    From float64 the dropped bits are folded into one sticky bit, so that the conversion to float32 is exact: rounding 1
    + 2**-8 + 2**-40 to float32 first would lose that it lies above the middle of two bfloat16 numbers. For bfloat16
    more bits are dropped than float32 needs, because its denormals are also denormals of float32, which holds fewer
    bits.
    """
    if number.form.over(0) == F32:
        return number
    pattern = number.bits()
    dropped = pattern & ((1 << dropped_bits) - 1)
    folded = (pattern ^ dropped) | choose(dropped.differs(0), pattern.literal(1 << dropped_bits), 0)
    return folded.reinterpreted(F64).narrowed(F32)

"""Shifts. A negative amount, or one not below the width, shifts everything out; MLIR's own shifts give poison."""

from __future__ import annotations

from tensorkiln.dtypes import DType

from .form import Form
from .number import Number, choose


def shift_left(dtype: DType, a: Number, amount: Number) -> Number:
    """a << amount in the low bits; 0 for an amount too large."""
    fits, safe = _amount(a.form, amount, otherwise=0)
    return choose(fits, a << safe, 0)


def shift_right(dtype: DType, a: Number, amount: Number) -> Number:
    """Arithmetic for signed, logical for unsigned; too large an amount leaves only copies of the sign, or 0."""
    if dtype.is_signed:
        return a.arithmetic_shift(_amount(a.form, amount, otherwise=a.form.bits - 1)[1])
    fits, safe = _amount(a.form, amount, otherwise=0)
    return choose(fits, a >> safe, 0)


def _amount(form: Form, amount: Number, *, otherwise: int) -> tuple[Number, Number]:
    """Whether the amount, read as unsigned, is in range, and an amount that always is."""
    fits = amount.below(form.bits)
    safe = choose(fits, amount, otherwise)
    return fits, safe.zero_extended(form) if form.bits > safe.form.bits else safe.truncated(form)

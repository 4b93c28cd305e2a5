"""Polynomials, and the multiply-add that they consist of."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import math

from .number import Number, literal
from .traits import Traits


def multiply_add(traits: Traits, a: Number, b: Number | float, c: Number | float) -> Number:
    """a*b + c, rounded once if the target has the instruction, else twice."""
    b = b if isinstance(b, Number) else literal(a.form, b)
    c = c if isinstance(c, Number) else literal(a.form, c)
    if traits.has_fma:
        return Number(math.fma(a.value, b.value, c.value), a.form)
    return a * b + c


def horner(traits: Traits, x: Number, coefficients: Sequence[float]) -> Number:
    """The polynomial with these coefficients, constant term first."""
    total = x.literal(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = multiply_add(traits, total, x, coefficient)
    return total

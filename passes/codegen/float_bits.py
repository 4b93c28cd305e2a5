"""Bit patterns of LLVM's floating-point literals, in the spellings of two LLVM versions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE 754 binary interchange format: widths of the exponent and of the stored fraction, in bits."""

    exponent: int
    fraction: int

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def quiet(self) -> int:
        return 1 << (self.fraction - 1)


FORMATS = {"half": Format(5, 10), "bfloat": Format(8, 7), "float": Format(8, 23), "double": Format(11, 52)}


def from_decimal(text: str, form: Format) -> int:
    """The pattern nearest to a decimal literal, ties to even; infinity beyond the largest finite value."""
    sign = form.sign if text.startswith("-") else 0
    value = abs(Fraction(text))
    if value == 0:
        return sign
    bias = (1 << (form.exponent - 1)) - 1
    power = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** power > value:
        power -= 1
    power = max(power, 1 - bias)
    # A carry out of the fraction moves into the exponent field, which is exactly the next pattern.
    significand = round(value / Fraction(2) ** (power - form.fraction))
    implicit = 1 << form.fraction
    pattern = significand if significand < implicit else ((power + bias - 1) << form.fraction) + significand
    return sign | min(pattern, form.infinity)


def from_special(text: str, form: Format) -> int:
    """The pattern of `+inf`, `-qnan`, `+nan(0x1)` (quiet, with a payload) or `+snan(0x1)` (signalling)."""
    sign = form.sign if text.startswith("-") else 0
    name, _, payload = text[1:].rstrip(")").partition("(")
    if name == "inf":
        return sign | form.infinity
    quiet = 0 if name == "snan" else form.quiet
    return sign | form.infinity | quiet | (int(payload, 16) if payload else 0)


def hexadecimal(pattern: int, type_name: str) -> str:
    """LLVM 22's hexadecimal literal: `0xH` half, `0xR` bfloat, and the bits of the equal double for the other two."""
    if type_name == "half":
        return f"0xH{pattern:04X}"
    if type_name == "bfloat":
        return f"0xR{pattern:04X}"
    return f"0x{pattern if type_name == 'double' else _widen(pattern):016X}"


@cache
def _widen(pattern: int) -> int:
    """The double pattern equal to a float pattern; a NaN keeps its sign, quiet bit and payload."""
    sign, exponent, fraction = pattern >> 31, (pattern >> 23) & 0xFF, pattern & 0x7FFFFF
    if exponent == 0xFF:
        exponent = 0x7FF
    elif exponent:
        exponent += 1023 - 127
    elif fraction:
        shift = 24 - fraction.bit_length()
        exponent, fraction = 1023 - 126 - shift, (fraction << shift) & 0x7FFFFF
    return sign << 63 | exponent << 52 | fraction << 29

"""Narrow dtypes to and from the wide ones that they are computed in, by integer arithmetic on every target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tensorkiln.dtypes import DType

from .form import F32, I8, I32
from .number import Number, choose


@dataclass(frozen=True, slots=True)
class _Layout:
    """A float of at most 8 bits: a sign, an exponent whose field is `bias` for 1.0, and `fraction` stored bits.

    `nan` is the code of NaN without its sign; 0 if there is none, and the code of -0 if NaN has no sign. Numbers beyond
    `greatest`, the code of the largest finite number, become the code `overflow`.
    """

    bits: int
    fraction: int
    bias: int
    greatest: int
    overflow: int
    nan: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def has_one_zero(self) -> bool:
        """Whether the code of -0 is the only NaN, as in the fnuz formats."""
        return self.nan == self.sign

    @property
    def shift(self) -> int:
        """How much further left the exponent field is in float32."""
        return F32.fraction - self.fraction

    @property
    def rebias(self) -> int:
        return F32.bias - self.bias


_LAYOUTS: Final = {
    DType.FLOAT8_E4M3FN: _Layout(8, 3, 7, greatest=0x7E, overflow=0x7F, nan=0x7F),
    DType.FLOAT8_E4M3FNUZ: _Layout(8, 3, 8, greatest=0x7F, overflow=0x80, nan=0x80),
    DType.FLOAT8_E5M2: _Layout(8, 2, 15, greatest=0x7B, overflow=0x7C, nan=0x7E),
    DType.FLOAT8_E5M2FNUZ: _Layout(8, 2, 16, greatest=0x7F, overflow=0x80, nan=0x80),
    DType.FLOAT4_E2M1FN: _Layout(4, 1, 1, greatest=0x7, overflow=0x7, nan=0),
}


def widened(dtype: DType, byte: Number) -> Number:
    """Exact: float32 for a narrow float, 8 bits for a narrow integer. Bits above those of `dtype` are ignored."""
    layout = _LAYOUTS.get(dtype)
    if layout is not None:
        return _to_single(layout, byte.zero_extended(I32))
    if dtype.wide.is_unsigned:
        return low_bits(dtype, byte)
    above = I8.bits - dtype.bits
    return (byte << above).arithmetic_shift(above)


def narrowed(dtype: DType, wide: Number) -> Number:
    """The code, zero-extended to a byte, of a float32 rounded to nearest even, or of an 8-bit integer's low bits."""
    layout = _LAYOUTS.get(dtype)
    return low_bits(dtype, wide) if layout is None else _from_single(layout, wide).truncated(I8)


def low_bits(dtype: DType, byte: Number) -> Number:
    """A byte with the bits above those of `dtype` cleared."""
    return byte if dtype.bits >= I8.bits or not dtype.is_narrow else byte & ((1 << dtype.bits) - 1)


def _to_single(layout: _Layout, code: Number) -> Number:
    magnitude = (code & (layout.sign - 1)) << layout.shift
    normal = magnitude + (layout.rebias << F32.fraction)
    # A denormal's fraction under the exponent of the least normal number is too large by that number.
    least = (layout.rebias + 1) << F32.fraction
    denormal = ((magnitude + least).reinterpreted(F32) - magnitude.literal(least).reinterpreted(F32)).bits()
    result = choose(magnitude.below(1 << F32.fraction), denormal, normal)
    sign = (code & layout.sign) << (F32.bits - layout.bits)
    quiet_nan = 0x7FC00000
    if layout.has_one_zero:
        return choose((code & 0xFF).equals(layout.nan), quiet_nan, result | sign).reinterpreted(F32)
    if layout.nan:
        plain = code & (layout.sign - 1)
        result = choose(plain.below(layout.greatest + 1), result, quiet_nan)
        if layout.overflow != layout.nan:
            result = choose(plain.equals(layout.overflow), F32.infinity, result)
    return (result | sign).reinterpreted(F32)


def _from_single(layout: _Layout, single: Number) -> Number:
    pattern = single.bits()
    magnitude = pattern & 0x7FFFFFFF
    odd = (magnitude >> layout.shift) & 1
    half_less = (1 << (layout.shift - 1)) - 1
    normal = (magnitude + odd + (half_less - (layout.rebias << F32.fraction))) >> layout.shift
    # Adding a power of two whose unit in the last place is the least denormal lets the FPU do the rounding.
    aligner = (layout.rebias + layout.shift + 1) << F32.fraction
    aligned = magnitude.reinterpreted(F32) + magnitude.literal(aligner).reinterpreted(F32)
    least_normal = (layout.rebias + 1) << F32.fraction
    finite = choose(magnitude.below(least_normal), aligned.bits() - aligner, normal)
    is_nan = magnitude.literal(F32.infinity).below(magnitude)
    result = choose(is_nan, layout.nan, choose(finite.below(layout.greatest + 1), finite, layout.overflow))
    sign = (pattern >> (F32.bits - layout.bits)) & layout.sign
    if layout.has_one_zero:
        return choose(result.equals(0), 0, result | sign)
    return result | sign if layout.nan else choose(is_nan, 0, result | sign)

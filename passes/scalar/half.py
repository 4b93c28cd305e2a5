"""The 16-bit floats to and from float32, by integer arithmetic, since LLVM would call the compiler's runtime.

float16 takes an instruction if the target has it. That of bfloat16 flushes denormals on some CPUs.
"""

from __future__ import annotations

from .form import BF16, F16, F32, I16, I32
from .number import Number, choose
from .traits import Traits

_REBIAS = F32.bias - F16.bias
_SHIFT = F32.fraction - F16.fraction
# The exponent fields of infinities and NaNs.
_EXPONENT_16, _EXPONENT_32 = 0x1F, 0xFF


def half_to_single(traits: Traits, half: Number) -> Number:
    """Exact; a NaN becomes quiet if the target has the instruction."""
    if traits.has_half:
        return half.widened(F32)
    pattern = half.reinterpreted(I16).zero_extended(I32)
    magnitude = (pattern & 0x7FFF) << _SHIFT
    normal = magnitude + (_REBIAS << F32.fraction)
    special = magnitude + ((_EXPONENT_32 - _EXPONENT_16) << F32.fraction)
    # A denormal's fraction under the exponent of the least normal number is too large by that number.
    least = (_REBIAS + 1) << F32.fraction
    denormal = ((magnitude + least).reinterpreted(F32) - magnitude.literal(least).reinterpreted(F32)).bits()
    is_special = (pattern & F16.infinity).equals(F16.infinity)
    is_denormal = (pattern & F16.infinity).equals(0)
    finite = choose(is_denormal, denormal, normal)
    sign = (pattern & 0x8000) << 16
    return (choose(is_special, special, finite) | sign).reinterpreted(F32)


def single_to_half(traits: Traits, single: Number) -> Number:
    """To nearest, ties to even; NaN stays NaN."""
    if traits.has_half:
        return single.narrowed(F16)
    pattern = single.bits()
    magnitude = pattern & 0x7FFFFFFF
    odd = (magnitude >> _SHIFT) & 1
    normal = (magnitude + odd + (((1 << (_SHIFT - 1)) - 1) - (_REBIAS << F32.fraction))) >> _SHIFT
    # Adding a power of two whose unit in the last place is float16's least denormal lets the FPU do the rounding.
    aligner = (_REBIAS + _SHIFT + 1) << F32.fraction
    aligned = magnitude.reinterpreted(F32) + magnitude.literal(aligner).reinterpreted(F32)
    denormal = aligned.bits() - aligner
    least_normal = (_REBIAS + 1) << F32.fraction
    first_overflow = (F32.bias + 16) << F32.fraction
    finite = choose(magnitude.below(least_normal), denormal, normal)
    quiet_nan = (magnitude >> _SHIFT) & 0x3FF | 0x7E00
    special = choose(magnitude.literal(F32.infinity).below(magnitude), quiet_nan, F16.infinity)
    result = choose(magnitude.below(first_overflow), finite, special)
    sign = (pattern >> 16) & 0x8000
    return (result | sign).truncated(I16).reinterpreted(F16)


def bfloat_to_single(bfloat: Number) -> Number:
    """Exact: bfloat16 is the upper half of float32."""
    return (bfloat.reinterpreted(I16).zero_extended(I32) << 16).reinterpreted(F32)


def single_to_bfloat(single: Number) -> Number:
    """To nearest, ties to even; NaN stays NaN, and becomes quiet."""
    pattern = single.bits()
    odd = (pattern >> 16) & 1
    rounded = (pattern + odd + 0x7FFF) >> 16
    quiet_nan = (pattern >> 16) | 0x0040
    return choose(single.is_nan(), quiet_nan, rounded).truncated(I16).reinterpreted(BF16)

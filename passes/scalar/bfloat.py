"""bfloat16 to and from float32, by integer arithmetic on every target.

The instruction of some CPUs flushes denormals, and without one LLVM calls the compiler's runtime.
"""

from __future__ import annotations

from .form import BF16, F32, I16, I32
from .number import Number, choose


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

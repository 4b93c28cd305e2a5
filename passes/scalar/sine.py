"""The sine of an argument of any size.

Up to a bound the nearest multiple of pi or pi/2 is subtracted in parts whose products are exact (W. J. Cody, W. Waite,
"Software manual for the elementary functions", 1980); beyond, the reduction of Payne and Hanek takes over. Both are
computed and one is chosen, so that a loop over the elements has no branch.
"""

from __future__ import annotations

from .form import F32, F64, I32
from .integers import nearest_integer
from .number import Number, choose
from .polynomial import horner, multiply_add
from .sine_double import sine_of_double
from .traits import Traits
from .turns import half_turns_of_single

# (sin(r) / r - 1) / r**2 in powers of r**2 on [-pi/2, pi/2]: minimax for the relative error by Remez exchange in
# 500-bit arithmetic, then rounded; error 2**-27.3.
_SINE = (-0.16666659535572817, 0.008333065833606287, -0.00019809570676674145, 2.605705393622336e-06)
_ONE_OVER_PI = 0.3183098861837907
# pi as a sum; without fused multiply-add in parts of 33 bits, whose products with a multiple of 20 bits are exact.
_PI_FUSED = (3.141592653589793, 1.2246467991473532e-16)
_PI_PLAIN = (3.1415926534682512, 1.2154201012607932e-10, 4.044532497591901e-21)
_BOUND = 2.0**16


def sin(traits: Traits, x: Number) -> Number:
    """sin(x); NaN for infinities and NaN; -0 at -0."""
    size = x.absolute()
    value = (_sine_of_single if x.form == F32 else sine_of_double)(traits, size)
    sign = x.bits() & (1 << (x.form.bits - 1))
    signed = (value.bits() ^ sign).reinterpreted(x.form)
    return choose(size.less(float("inf")), signed, float("nan"))


def _sine_of_single(traits: Traits, size: Number) -> Number:
    """sin(size) for a finite size >= 0, in float64 up to the final rounding, so that cancellation does not matter."""
    wide = size.widened(F64)
    multiple, near_count = nearest_integer(wide * _ONE_OVER_PI)
    near = wide
    for part in _PI_FUSED if traits.has_fma else _PI_PLAIN:
        near = multiply_add(traits, -multiple, part, near)
    far_count, far = half_turns_of_single(size)
    is_near = size.less(_BOUND)
    angle = choose(wide.less(_BOUND), near, far)
    count = choose(is_near, near_count.truncated(I32), far_count)
    square = angle * angle
    sine = multiply_add(traits, angle * square, horner(traits, square, _SINE), angle)
    return (sine.narrowed(F32).bits() ^ (count << 31)).reinterpreted(F32)

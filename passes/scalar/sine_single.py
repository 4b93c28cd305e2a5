"""The sine of float32, computed in float64 up to the final rounding, so that cancellation does not matter."""

from __future__ import annotations

from .form import F32, F64, I32
from .integers import nearest_integer
from .number import Number, choose
from .polynomial import horner, multiply_add
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


def sine_of_single(traits: Traits, size: Number) -> Number:
    """sin(size) for a finite size >= 0."""
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

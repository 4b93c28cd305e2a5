"""|x|**y of float32 in float64: 2**-38 relative before the one rounding to float32.

Coefficients: minimax by Remez exchange in 500-bit arithmetic, then rounded.
"""

from __future__ import annotations

from .exp2 import power_of_two
from .form import F32, F64
from .integers import nearest_integer
from .log2 import decomposed_normal
from .number import Number, choose
from .polynomial import horner, multiply_add
from .traits import Traits

# 2 * atanh(s) / s / ln(2) in powers of s**2, error 2**-44
_LOG2 = (
    2.8853900817778495,
    0.9617966941142184,
    0.5770779421162396,
    0.4122092770107387,
    0.3199047025637902,
    0.28291418748362984,
)
# 2**r, error 2**-34.3
_EXP2 = (
    1.0,
    0.6931471807044894,
    0.24022651066581815,
    0.05550410366079326,
    0.009618038129778456,
    0.0013333934997514303,
    0.00015466756914951274,
    1.5196168547654049e-05,
)
# Beyond these powers of two a float32 is infinite or 0.
_LIMIT = 200.0


def magnitude_of_singles(traits: Traits, x: Number, y: Number) -> Number:
    """|x|**y; meaningless where x or y is NaN, y is 0, or |x| is 1 and y infinite."""
    base = x.absolute().widened(F64)
    exponent, f = decomposed_normal(base)
    s = f / (f + 2.0)
    finite = multiply_add(traits, s, horner(traits, s * s, _LOG2), exponent)
    infinity = float("inf")
    logarithm = choose(base.equals(0.0), -infinity, choose(base.equals(infinity), infinity, finite))
    product = y.widened(F64) * logarithm
    bounded = choose(product.greater(_LIMIT), _LIMIT, product)
    bounded = choose(bounded.less(-_LIMIT), -_LIMIT, bounded)
    whole, power = nearest_integer(bounded)
    return (horner(traits, bounded - whole, _EXP2) * power_of_two(F64, power)).narrowed(F32)

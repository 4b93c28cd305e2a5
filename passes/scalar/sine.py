"""The sine of an argument of any size.

Up to a bound the nearest multiple of pi or pi/2 is subtracted in parts whose products are exact (W. J. Cody, W. Waite,
"Software manual for the elementary functions", 1980); beyond, the reduction of Payne and Hanek takes over. Both are
computed and one is chosen, so that a loop over the elements has no branch.
"""

from __future__ import annotations

from .form import F32
from .number import Number, choose
from .sine_double import sine_of_double
from .sine_single import sine_of_single
from .traits import Traits


def sin(traits: Traits, x: Number) -> Number:
    """sin(x); NaN for infinities and NaN; -0 at -0."""
    size = x.absolute()
    value = (sine_of_single if x.form == F32 else sine_of_double)(traits, size)
    sign = x.bits() & (1 << (x.form.bits - 1))
    signed = (value.bits() ^ sign).reinterpreted(x.form)
    return choose(size.less(float("inf")), signed, float("nan"))

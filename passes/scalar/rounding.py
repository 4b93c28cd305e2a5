"""Exact rounding to whole numbers: signed zeros, infinities, NaN and whole numbers stay as they are."""

from __future__ import annotations

from .number import Number, choose
from .traits import Traits


def truncate(traits: Traits, x: Number) -> Number:
    """x toward zero."""
    if traits.has_rounding:
        return x.toward_zero()
    size = x.absolute()
    # From 2**fraction on there is no fraction; below it, adding that much rounds to the nearest whole number.
    limit = float(1 << x.form.fraction)
    nearest = (size + limit) - limit
    whole = choose(size.less(nearest), nearest - 1.0, nearest)
    truncated = choose(size.less(limit), whole, size)
    sign = x.bits() & (1 << (x.form.bits - 1))
    return (truncated.bits() | sign).reinterpreted(x.form)

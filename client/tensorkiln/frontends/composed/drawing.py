"""Random numbers of distributions that importers have in common."""

from __future__ import annotations

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .refusal import Refusal


def uniform_between(drawn: Tensor, low: float, high: float, refuse: Refusal) -> Tensor:
    """Uniform numbers from `low` up to but without `high`, of `drawn` ones from 0 up to but without 1.

    `low` alone where the type has no number between. `refuse` is called for bounds that are further apart than the
    type's greatest number, or not finite.
    """
    kind = drawn.dtype
    with np.errstate(over="ignore"):
        span = np.asarray(high - low, kind.numpy)
    if not np.isfinite(span):
        refuse(f"uniform numbers from {low} to {high} are of a wider range than {kind} has numbers")
    found = drawn * (high - low) + low
    # A sum may be rounded up to the bound.
    return build.minimum(found, _last_below(high, low, kind)) if low < high else found


def _last_below(high: float, low: float, dtype: DType) -> float:
    """The greatest number of the type below `high`; not less than `low`."""
    with np.errstate(over="ignore"):
        last = np.asarray(high, dtype.numpy)
    if float(last) >= high:
        last = np.nextafter(last, np.asarray(-np.inf, dtype.numpy))
    return max(float(last), float(np.asarray(low, dtype.numpy)))

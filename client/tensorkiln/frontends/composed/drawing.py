"""Random distributions that several importers share."""

from __future__ import annotations

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .refusal import Refusal


def uniform_between(drawn: Tensor, low: float, high: float, refuse: Refusal) -> Tensor:
    """Uniform numbers in [low, high), from `drawn` numbers in [0, 1).

    Always `low` where the type has no other number in the range. `refuse` is called when `high - low` is not finite in
    the type.
    """
    kind = drawn.dtype
    with np.errstate(over="ignore"):
        span = np.asarray(high - low, kind.numpy)
    if not np.isfinite(span):
        refuse(f"uniform numbers from {low} to {high} are of a wider range than {kind} has numbers")
    found = drawn * (high - low) + low
    # Rounding may give `high` itself.
    return build.minimum(found, _last_below(high, low, kind)) if low < high else found


def _last_below(high: float, low: float, dtype: DType) -> float:
    """The greatest number of the type below `high`, but at least `low`."""
    with np.errstate(over="ignore"):
        last = np.asarray(high, dtype.numpy)
    if float(last) >= high:
        last = np.nextafter(last, np.asarray(-np.inf, dtype.numpy))
    return max(float(last), float(np.asarray(low, dtype.numpy)))

"""How near to JAX's results what is computed here has to be."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.frontends.jax.functions import Array

RELATIVE: Final = {"float32": 2e-5, "float64": 1e-11, "float16": 4e-3, "bfloat16": 2e-2}
"""By dtype: of the largest finite element of a result. Both round, in another order; whole values are equal."""


def difference(actual: Any, expected: Array) -> str:
    """What is wrong with a result; empty when nothing is."""
    given = np.asarray(actual)
    if (given.shape, given.dtype) != (expected.shape, expected.dtype):
        return f"{given.dtype}{list(given.shape)} where JAX gives {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind == "c":
        parts = np.empty(0, expected.dtype).real.dtype
        return difference(given.reshape(-1).view(parts), expected.reshape(-1).view(parts))
    if expected.dtype.name not in RELATIVE:
        return "" if np.array_equal(given, expected) else f"{(given != expected).sum()} elements differ"
    left, right = given.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(np.where(finite, 0, left), np.where(finite, 0, right), equal_nan=True):
        return "what is not finite differs"
    if not np.isfinite(left[finite]).all():
        return "what JAX has finite is not"
    scale = max(float(np.abs(right[finite]).max(initial=0)), 1e-30)
    far = float(np.abs(left[finite] - right[finite]).max(initial=0)) / scale
    return "" if far <= RELATIVE[expected.dtype.name] else f"differs by {far:.2e} of its largest element"

"""Functions that graphs have no nodes of, against NumPy's in a wider type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.frontends.composed import trigonometry
from tensorkiln.reference import evaluate

UNIT = np.concatenate([np.linspace(-1, 1, 2001), [-0.0, np.nan, 1e-20, -0.9999]])
LINE = np.concatenate([np.linspace(-50, 50, 2001), np.logspace(-30, 30, 200), [np.inf, -np.inf, np.nan, -0.0]])
ABOVE = np.concatenate([1 + np.logspace(-6, 30, 200), [1.0, np.inf]])
CASES = {
    "asin": (np.arcsin, UNIT, 3),
    "acos": (np.arccos, UNIT, 3),
    "atan": (np.arctan, LINE, 2),
    "asinh": (np.arcsinh, LINE, 3),
    "acosh": (np.arccosh, ABOVE, 3),
    "atanh": (np.arctanh, UNIT, 4),
    "sinh": (np.sinh, LINE[np.abs(LINE) < 10], 8),
    "cosh": (np.cosh, LINE[np.abs(LINE) < 10], 8),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_a_function_is_a_few_steps_from_the_exact_one(name: str, dtype: str) -> None:
    exact, points, steps = CASES[name]
    x = points.astype(dtype)
    b = Builder(name)
    b.output(getattr(trigonometry, name)(b.input(dtype, x.shape)))
    with np.errstate(all="ignore"):
        (found,) = evaluate(b.graph(), x)
        expected: Any = exact(x.astype(np.longdouble)).astype(dtype)
    rtol = steps * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=float(np.finfo(dtype).tiny))
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(expected[x == 0]))

"""Divisions by what is the same along a row are correctly rounded, whatever the divisor; but see `off_by`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, exp2
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tests.compiled import proven, runs_here

DTYPES = ["float32", "float64"]
TARGETS = ["cpu:native", "cpu:x86-64-v3", "cpu:x86-64-v2"]
COLUMNS = [64, 67, "n"]


def divided(dtype: str, columns: int | str) -> Graph:
    """x / s and exp2(x) / s - x / s, for s of one column."""
    builder = Builder("divided")
    rows = builder.symbol("r", 1, 65536)
    size = builder.symbol(columns, 1, 4096) if isinstance(columns, str) else columns
    x, s = builder.input(dtype, (rows, size)), builder.input(dtype, (rows, 1))
    builder.output(x / s, exp2(x) / s - x / s)
    return builder.graph()


@cache
def program(dtype: str, columns: int | str, target: str) -> Program:
    compilation = proven(divided(dtype, columns), target)
    return Program(compilation.program, compilation.artifacts.__getitem__, threads=1)


def extremes(dtype: str) -> np.ndarray:
    """Values around all that a float has borders at, of both signs, and NaN."""
    limits = np.finfo(dtype)
    exponents = np.arange(limits.minexp - limits.nmant, limits.maxexp, 7)
    powers = np.ldexp(np.ones(len(exponents), dtype), exponents)
    kept = [0, 1, 3, 1 / 3, limits.max, limits.tiny, limits.smallest_subnormal, np.inf, 2.0**64, 2.0**-64]
    values = np.concatenate([np.array(kept, dtype), powers, np.nextafter(powers, np.inf, dtype=dtype)])
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


def off_by(dtype: str, x: np.ndarray, s: np.ndarray, quotient: np.ndarray) -> np.ndarray:
    """The units in the last place that a quotient may be off."""
    limits = np.finfo(dtype)
    is_small = (np.abs(x) < np.ldexp(limits.tiny, limits.nmant + 1)) | (np.abs(quotient) < limits.tiny)
    is_steady = (np.abs(s) >= 2.0**-64) & (np.abs(s) <= 2.0**64)
    return np.where(is_small & is_steady, 2, 0)


def check(dtype: str, columns: int | str, target: str, x: np.ndarray, s: np.ndarray) -> None:
    sizes = {"r": len(s)} | ({"n": x.shape[1]} if columns == "n" else {})
    (got, _) = program(dtype, columns, target)(x, s, **sizes)
    with np.errstate(all="ignore"):
        expected = x / s
        far = np.abs(got - expected) > off_by(dtype, x, s, expected) * np.spacing(np.abs(expected))
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    wrong = ~same & (far | ~np.isfinite(expected) | (expected == 0) & (np.signbit(got) != np.signbit(expected)))
    assert not wrong.any(), [*zip(x[wrong], np.broadcast_to(s, x.shape)[wrong], got[wrong], strict=True)][:5]


@pytest.mark.parametrize("target", [name for name in TARGETS if runs_here(name)])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_are_divided_by_extremes(dtype: str, columns: int | str, target: str) -> None:
    values = extremes(dtype)
    width = columns if isinstance(columns, int) else 131
    padded = np.resize(values, (-(-len(values) // width), width))
    x = np.tile(padded, (len(values), 1))
    check(dtype, columns, target, x, np.repeat(values, len(padded))[:, None])


@pytest.mark.parametrize("target", [name for name in TARGETS if runs_here(name)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_significands_are_divided_exactly(dtype: str, target: str) -> None:
    generator = np.random.default_rng(7)
    kind = np.dtype(dtype)
    x = np.ldexp(generator.uniform(1, 2, (4096, 67)).astype(kind), generator.integers(-60, 60, (4096, 67)))
    s = np.ldexp(generator.uniform(1, 2, (4096, 1)).astype(kind), generator.integers(-60, 60, (4096, 1)))
    check(dtype, 67, target, x.astype(kind), s.astype(kind))


@pytest.mark.parametrize("divisor", [3.0, 0.1, 4.0, 0.0, float("inf"), float("nan"), 1e30])
def test_a_constant_divisor(divisor: float) -> None:
    builder = Builder("thirds")
    x: Tensor = builder.input("float32", (3, 100))
    builder.output(x / divisor)
    compilation = proven(builder.graph())
    given = np.random.default_rng(1).standard_normal((3, 100)).astype(np.float32)
    (got,) = Program(compilation.program, compilation.artifacts.__getitem__)(given)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, given / np.float32(divisor))

"""Literals of every dtype."""

from __future__ import annotations

import numpy as np
import pytest

from passes import scalar
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tests.scalar.kernel import kernel
from tests.scalar.values import FLOATS, INTEGERS, assert_same, edges


def _value(dtype: DType, literal: float) -> np.ndarray:
    return kernel(lambda _, __: scalar.constant(dtype, literal), (dtype,), dtype)(np.zeros(1, dtype.numpy))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_edges(dtype: DType) -> None:
    for edge in (dtype.min, dtype.max, 0, 1):
        assert _value(dtype, edge)[0] == edge


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_edges(dtype: DType) -> None:
    expected = edges(dtype)[:12]
    actual = np.concatenate([_value(dtype, float(value)) for value in expected])
    assert_same(actual, expected, expected)


def test_bool_is_whether_it_is_not_zero() -> None:
    assert [bool(_value(DType.BOOL, literal)[0]) for literal in (False, True, 2)] == [False, True, True]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_decimal_is_rounded_once(dtype: DType) -> None:
    assert _value(dtype, 0.1)[0] == dtype.numpy.type(0.1)


def test_unit_has_no_value() -> None:
    with pytest.raises(UnsupportedGraphError, match="unit"):
        kernel(lambda _, values: scalar.constant(DType.UNIT, 0), (DType.INT8,), DType.INT8)

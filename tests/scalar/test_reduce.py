"""Identities, and combining one more value."""

from __future__ import annotations

import numpy as np
import pytest

from passes import scalar
from tensorkiln.dtypes import DType
from tests.scalar.kernel import assembler, kernel
from tests.scalar.values import FLOATS, INTEGERS, assert_same, edges, pairs

DTYPES = (*FLOATS, *INTEGERS, DType.BOOL)
KINDS = ("sum", "prod", "max")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_combining_with_the_identity_changes_nothing(kind: str, dtype: DType) -> None:
    x = edges(dtype)
    compiled = kernel(
        lambda traits, values: scalar.reduce_combine(
            kind, dtype, scalar.reduce_identity(kind, dtype), values[0], traits=traits
        ),
        (dtype,),
        dtype,
    )
    # The only exception: a sum that starts from +0 has no -0.
    expected = x + dtype.numpy.type(0) if kind == "sum" and dtype.is_float else x
    assert_same(compiled(x), expected, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "node"), [("sum", "add"), ("prod", "mul"), ("max", "max")])
def test_combining_is_the_binary_operation(kind: str, node: str, dtype: DType) -> None:
    a, b = pairs(edges(dtype), edges(dtype))
    combined = kernel(
        lambda traits, values: scalar.reduce_combine(kind, dtype, values[0], values[1], traits=traits),
        (dtype, dtype),
        dtype,
    )
    operation = kernel(
        lambda traits, values: scalar.binop(node, dtype, values[0], values[1], traits=traits), (dtype, dtype), dtype
    )
    assert_same(combined(a, b), operation(a, b), a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_identity_of_max_is_the_least_value(dtype: DType) -> None:
    compiled = kernel(lambda _, __: scalar.reduce_identity("max", dtype), (dtype,), dtype)
    assert compiled(np.zeros(3, dtype.numpy)).tolist() == [dtype.min] * 3


def test_a_float32_sum_does_not_promise_an_order() -> None:
    text = assembler(
        lambda _, values: scalar.reduce_combine("sum", DType.FLOAT32, values[0], values[0]),
        (DType.FLOAT32,),
        DType.FLOAT32,
        "cpu:x86-64-v3",
    )
    assert "ymm" in text

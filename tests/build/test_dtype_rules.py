"""What goes together and what does not: dtypes, scalars, shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, full, gather, one_hot, where
from tensorkiln.dtypes import DType
from tensorkiln.errors import CallInputError, InvalidGraphError
from tensorkiln.reference import evaluate

if TYPE_CHECKING:
    from tests.build.conftest import Compute


def tensor(dtype: str, shape: tuple[int, ...] = (2,)) -> Tensor:
    return Builder().input(dtype, shape)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_float or dtype.is_integer])
def test_a_python_integer_adopts_the_dtype_of_the_tensor(compute: Compute, dtype: DType):
    x = np.array([1, 2], dtype.numpy)
    np.testing.assert_array_equal(compute(lambda x: 3 + x * 2, x), np.array([5, 7], dtype.numpy))


@pytest.mark.parametrize(
    ("dtype", "operation"),
    [
        ("int32", lambda x: x + 0.5),
        ("uint8", lambda x: x + 256),
        ("uint8", lambda x: x - -1),
        ("bool", lambda x: x & 1),
        ("float32", lambda x: x * True),
        ("float32", lambda x: x + np.float64(1)),
        ("int32", lambda x: x / 2),
        ("float32", lambda x: x & x),
        ("float32", lambda x: ~x),
        ("bool", lambda x: -x),
        ("bool", lambda x: x - x),
        ("bool", lambda x: x.sum()),
        ("int32", lambda x: x.mean()),
        ("int32", lambda x: x.exp()),
        ("float32", lambda x: x << 1),
        ("float32", lambda x: x.any()),
        ("int32", lambda x: x.softmax()),
        ("float32", lambda x: one_hot(x, 3)),
        ("float32", lambda x: where(x, x, x)),
    ],
)
def test_an_operation_outside_its_dtypes_is_refused(dtype: str, operation: Callable[[Tensor], object]):
    with pytest.raises(InvalidGraphError):
        operation(tensor(dtype))


def test_two_dtypes_do_not_mix_without_a_cast():
    builder = Builder()
    x, y = builder.input("float32", (2,)), builder.input("float64", (2,))
    with pytest.raises(InvalidGraphError, match="no implicit promotion"):
        _ = x * y
    assert (x.cast("float64") * y).dtype is DType.FLOAT64


def test_an_array_is_no_operand_on_either_side():
    x, array = tensor("float32"), cast("Any", np.ones(2, np.float32))
    for attempt in (lambda: x + array, lambda: array + x):
        with pytest.raises(TypeError, match=r"builder\.constant"):
            attempt()


def test_a_tensor_has_no_truth_value_and_does_not_iterate():
    x = tensor("float32")
    with pytest.raises(TypeError, match="truth"):
        bool(x < 1)
    with pytest.raises(TypeError, match="iterable"):
        iter(x)
    assert len({x, x}) == 1
    assert repr(x) == "Tensor(v0: float32[2])"


def test_broadcasting_is_numpys_and_spelled_with_reshape_and_expand(compute: Compute, rng: np.random.Generator):
    a, b = rng.random((4, 1, 3)), rng.random((2, 1))
    np.testing.assert_array_equal(compute(lambda a, b: a - b, a, b), a - b)
    np.testing.assert_array_equal(compute(lambda a, b: a - b, a, b, shapes=[("n", 1, 3), ("m", 1)]), a - b)
    builder = Builder()
    _ = builder.input("float32", (2, 3)) + builder.input("float32", (3,))
    builder.output(builder.input("float32", ()) * builder.input("float32", (2, 3)))
    kinds = [node["node"] for node in builder.document()["nodes"]]
    assert kinds == ["placeholder", "placeholder", "reshape", "expand", "binop", "placeholder", "placeholder", "binop"]


def test_dims_that_cannot_be_equal_are_refused_at_once():
    builder = Builder()
    n = builder.symbol("n", 5, 9)
    with pytest.raises(InvalidGraphError, match="broadcast"):
        _ = builder.input("float32", (2, 3)) + builder.input("float32", (2,))
    with pytest.raises(InvalidGraphError, match="broadcast"):
        _ = builder.input("float32", (n,)) + builder.input("float32", (4,))


def test_dims_that_may_be_equal_are_compared_at_the_call():
    builder = Builder()
    n, m = builder.symbol("n", 1, 9), builder.symbol("m", 1, 9)
    builder.output(builder.input("float32", (n,)) + builder.input("float32", (m,)))
    graph = builder.graph()
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(evaluate(graph, ones, ones, n=3, m=3)[0], [2, 2, 2])
    with pytest.raises(CallInputError):
        evaluate(graph, ones, np.ones(1, np.float32), n=3, m=1)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32_and_rounded_once(compute: Compute, name: str, rng: np.random.Generator):
    dtype = np.dtype(np.float16 if name == "float16" else ml_dtypes.bfloat16)
    x = rng.standard_normal((4, 64)).astype(dtype)
    wide = x.astype(np.float32)
    cases: list[tuple[Callable[[Tensor], Tensor], Any]] = [
        (lambda x: x.exp(), np.exp(wide)),
        (lambda x: x.sum(1), wide.sum(1)),
        (lambda x: x.mean(), wide.mean()),
        (lambda x: x @ x.transpose(), wide @ wide.T),
        (lambda x: x.std(0), wide.std(0)),
    ]
    for function, expected in cases:
        actual = compute(function, x)
        spacing = np.spacing(np.abs(expected.astype(dtype)))
        assert np.all(np.abs(actual.astype(np.float32) - expected) <= 0.51 * spacing.astype(np.float32))


def test_casts_and_bitcasts_are_numpys(compute: Compute):
    x = np.array([[1.5, -2.5, 0.0, 300.0]], np.float32)
    np.testing.assert_array_equal(compute(lambda x: x.cast("int32"), x), x.astype(np.int32))
    np.testing.assert_array_equal(compute(lambda x: x.cast("bool"), x), x.astype(bool))
    np.testing.assert_array_equal(compute(lambda x: x.bitcast("uint32"), x), x.view(np.uint32))
    np.testing.assert_array_equal(compute(lambda x: x.bitcast("uint8"), x), x.view(np.uint8))
    np.testing.assert_array_equal(compute(lambda x: x.bitcast("float64"), x), x.view(np.float64))
    np.testing.assert_array_equal(compute(lambda x: x.bitcast("uint8"), x, shapes=[(1, "n")]), x.view(np.uint8))
    with pytest.raises(InvalidGraphError, match="whole number"):
        tensor("float32", (3,)).bitcast("float64")
    with pytest.raises(InvalidGraphError, match="rank 0"):
        tensor("float32", ()).bitcast("uint8")


def test_filled_tensors_are_one_expanded_constant():
    builder = Builder()
    n = builder.symbol("n", 1, 4)
    builder.output(full(builder, (n, 2), 7, "int16"), full(builder, (), 0.5, "float32"))
    matrix, scalar = evaluate(builder.graph(), n=3)
    np.testing.assert_array_equal(matrix, np.full((3, 2), 7, np.int16))
    assert scalar == np.float32(0.5)


def test_an_index_that_is_no_integer_is_refused():
    x = tensor("float32")
    with pytest.raises(InvalidGraphError, match="index"):
        gather(x, x, 0)

"""The bounds by which compiled code may differ: nothing where arithmetic is exact, and never less than what is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, cast, exp, gather, matmul, pad, reciprocal, sin, softmax, where
from tensorkiln.dtypes import DType
from tensorkiln.reference.precision import Array

from .bounds import Bounded, evaluate_bounded

Array32 = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def bounded(make: Callable[..., Tensor], *arrays: Array) -> Bounded:
    """The only output of what `make` composes of inputs like these arrays."""
    b = Builder("bounded")
    b.output(make(*(b.input(DType.from_numpy(array.dtype), array.shape) for array in arrays)))
    ((value, bound),) = evaluate_bounded(b.graph(), arrays, {})
    return value, bound


def normal(*shape: int, seed: int = 0) -> Array32:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_arithmetic_on_inputs_is_exact() -> None:
    _, bound = bounded(lambda x, y: where(x < y, x * y + 1.0, (x - y) / y), normal(5, 7), normal(5, 7, seed=1))
    assert not bound.any()


def test_integers_are_exact_whatever_they_are_summed_from() -> None:
    x = np.arange(-30, 30, dtype=np.int32).reshape(6, 10)
    _, bound = bounded(lambda a: matmul(a, a.transpose()).sum(0), x)
    assert not bound.any()


@pytest.mark.parametrize("terms", [2, 100, 5000])
def test_the_bound_of_a_sum_holds_in_float32_in_any_order_and_is_close(terms: int) -> None:
    x = normal(8, terms)
    value, bound = bounded(lambda a: a.sum(1), x)
    for order in (x, x[:, ::-1], np.sort(x, 1)):
        running = np.add.accumulate(order, axis=1, dtype=np.float32)[:, -1]
        assert (np.abs(running - value) <= bound).all()
    assert (bound <= 1e-6 * terms * np.abs(x).sum(1)).all()


def test_errors_of_an_op_are_carried_by_the_next() -> None:
    x, w = normal(6, 64), normal(64, 5, seed=1)
    _, first = bounded(matmul, x, w)
    value, second = bounded(lambda a, b: exp(matmul(a, b) * 0.25), x, w)
    assert (second >= 0.25 * first * value * 0.99).all()
    assert (second <= 0.25 * first * value * 1.1 + 1e-5 * value).all()


def test_a_change_of_the_inputs_within_their_loss_stays_within_the_bounds_of_the_result() -> None:
    """Of float32 beside float64: a softmax of a product, whose every op rounds differently in the two."""
    x, w = normal(6, 64), normal(64, 9, seed=1)
    value, bound = bounded(lambda a, b: sin(softmax(matmul(a, b))), x, w)
    scores = x.astype(np.float64) @ w.astype(np.float64)
    raised = np.exp(scores - scores.max(1, keepdims=True))
    assert (np.abs(np.sin(raised / raised.sum(1, keepdims=True)) - value) <= bound).all()
    assert bound.max() < 1e-3


def test_a_comparison_within_the_bounds_is_either_and_so_is_a_choice_by_it() -> None:
    x = np.array([[1.0, 2.0, -3.0], [1.0, 2.0, 3.0]], np.float32)
    value, bound = bounded(lambda a: where(a.sum(1) < 0.0, 5.0, a.max(1)), x)
    assert value.tolist() == [2.0, 3.0]
    assert bound.tolist() == [3.0, 0.0]
    _, uncertain = bounded(lambda a: a.sum(1) < 0.0, x)
    assert uncertain.tolist() == [1.0, 0.0]


def test_a_conversion_to_integers_is_certain_away_from_whole_numbers() -> None:
    x = np.array([[1.0, 2.0], [1.25, 2.25]], np.float32)
    value, bound = bounded(lambda a: cast(a.sum(1), "int32"), x)
    assert value.tolist() == [3, 3]
    assert bound.tolist() == [1.0, 0.0]


def test_movement_moves_the_bounds() -> None:
    x = normal(3, 4)
    _, sums = bounded(lambda a: a.sum(1), x)
    _, moved = bounded(lambda a: pad(a.sum(1), ((1, 0),)).reshape(2, 2).transpose(), x)
    assert moved.tolist() == np.pad(sums, ((1, 0),)).reshape(2, 2).T.tolist()


def test_a_value_at_a_certain_index_keeps_its_bound() -> None:
    x, index = normal(3, 4), np.array([2, 0], np.int64)
    _, sums = bounded(lambda a: a.sum(1), x)
    _, taken = bounded(lambda a, i: gather(a.sum(1), i, 0), x, index)
    assert taken.tolist() == sums[index].tolist()
    _, unknown = bounded(lambda a: gather(a.sum(1), cast(a.sum(1), "int64"), 0), np.ones((2, 3), np.float32))
    assert np.isinf(unknown).all()


def test_near_the_end_of_a_format_and_beyond_any_number_will_do() -> None:
    x = np.array([[60000.0, 5500.0], [60000.0, 6000.0], [1.0, 0.0]], np.float16)
    value, bound = bounded(lambda a: a.sum(1) * 1.0, x)
    assert np.isfinite(value).tolist() == [True, False, True]
    assert np.isinf(bound).tolist() == [True, True, False]


def test_the_reciprocal_of_what_may_be_zero_has_no_bound() -> None:
    _, bound = bounded(lambda a: reciprocal(a.sum(1)), np.array([[1.0, 2.0, -3.0], [1.0, 1.0, 1.0]], np.float32))
    assert np.isinf(bound).tolist() == [True, False]

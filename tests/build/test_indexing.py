"""Gather, scatter, one-hot and random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorkiln.build import (
    Builder,
    gather,
    one_hot,
    random_bits,
    random_normal,
    random_uniform,
    scatter,
    take,
    threefry,
)
from tensorkiln.errors import InvalidGraphError
from tensorkiln.reference import evaluate

if TYPE_CHECKING:
    from tests.build.conftest import Compute


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_takes_along_an_axis(compute: Compute, rng: np.random.Generator, axis: int):
    x = rng.standard_normal((4, 5))
    indices = rng.integers(0, x.shape[axis], (4, 5))
    expected = np.take_along_axis(x, indices, axis)
    np.testing.assert_array_equal(compute(lambda x, i: gather(x, i, axis), x, indices), expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_take_replaces_an_axis(compute: Compute, rng: np.random.Generator, axis: int, shape: tuple[int, ...]):
    x = rng.standard_normal((4, 5, 6))
    indices = rng.integers(0, x.shape[axis], shape).astype(np.int32)
    expected = np.take(x, indices, axis)
    np.testing.assert_array_equal(compute(lambda x, i: take(x, i, axis), x, indices), expected)


def test_the_last_of_equal_indices_wins_and_those_outside_are_dropped(compute: Compute):
    indices, updates = np.array([[1, 1, 2, 9, -1]]), np.array([[10.0, 20.0, 30.0, 40.0, 50.0]])
    actual = compute(lambda i, u: scatter(i, u, 1, (1, 4)), indices, updates)
    np.testing.assert_array_equal(actual, [[0, 20, 30, 0]])


def test_equal_indices_are_added_to_a_tensor(compute: Compute):
    indices, updates = np.array([[1, 1, 2, 9, -1]]), np.array([[10.0, 20.0, 30.0, 40.0, 50.0]])
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    actual = compute(lambda i, u, x: scatter(i, u, 1, into=x, reduction="add"), indices, updates, x)
    np.testing.assert_array_equal(actual, [[1, 32, 33, 4]])


def test_a_scatter_names_what_it_lacks():
    b = Builder("scatter")
    indices, updates = b.input("int64", (3,)), b.input("float32", (3,))
    with pytest.raises(InvalidGraphError, match="takes the shape of its result, or the tensor"):
        scatter(indices, updates, 0)
    with pytest.raises(InvalidGraphError, match=r"'mean' is not a reduction .* none, add, mul, min, max"):
        scatter(indices, updates, 0, (4,), reduction="mean")
    b.output(scatter(indices, updates, 0, (4,), into=b.input("float32", (5,))))
    with pytest.raises(InvalidGraphError, match="have the shape of the result"):
        b.graph()


def test_one_hot_is_the_identity_matrix_by_rows(compute: Compute):
    indices = np.array([[0, 3], [-1, 4]], np.int8)
    expected = np.concatenate([np.eye(4), np.zeros((1, 4))])[[[0, 3], [4, 4]]]
    np.testing.assert_array_equal(compute(lambda i: one_hot(i, 4), indices), expected)


def test_threefry_gives_the_published_vectors(compute: Compute):
    # Random123's known answers for threefry2x32 with 20 rounds, words packed low | high << 32.
    counters = np.array([0, 0xFFFFFFFFFFFFFFFF, 0x85A308D3243F6A88], np.uint64)
    keys = np.array([0, 0xFFFFFFFFFFFFFFFF, 0x0370734413198A2E], np.uint64)
    expected = np.array([0x99BA4EFE6B200159, 0xBB002BE71CB996FC, 0x483DF7A0C4923A9C], np.uint64)
    np.testing.assert_array_equal(compute(threefry, counters, keys), expected)


def test_random_bits_depend_on_the_key_and_the_position_alone():
    builder = Builder()
    n = builder.symbol("n", 1, 1000)
    key = builder.input("uint64", ())
    builder.output(
        random_bits(builder, (n, 3), 7), random_bits(builder, (3 * n,), key), random_bits(builder, (n, 3), 8)
    )
    literal, given, other = evaluate(builder.graph(), np.array(7, np.uint64), n=50)
    np.testing.assert_array_equal(literal.reshape(-1), given)
    assert not np.any(literal == other)
    assert len(np.unique(literal)) == 150


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_random_numbers_have_their_distribution(dtype: str):
    builder = Builder()
    builder.output(random_uniform(builder, (20000,), 1, dtype), random_normal(builder, (20000,), 2, dtype))
    uniform, normal = (array.astype(np.float64) for array in evaluate(builder.graph()))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(np.histogram(uniform, 8, (0, 1))[0] - 2500).max() < 250
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert abs((normal**4).mean() - 3) < 0.2
    assert np.isfinite(normal).all()


def test_random_integers_are_refused():
    with pytest.raises(InvalidGraphError, match="floats"):
        random_uniform(Builder(), (3,), 1, "int32")

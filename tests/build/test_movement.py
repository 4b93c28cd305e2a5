"""Reshaping, slicing, joining, padding against NumPy, static and symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, cat, moveaxis, split, squeeze, stack, view
from tensorkiln.errors import CallInputError, InvalidGraphError
from tensorkiln.expr import symbol
from tensorkiln.reference import evaluate

if TYPE_CHECKING:
    from tests.build.conftest import Compute

X = np.arange(6 * 7 * 4, dtype=np.int32).reshape(6, 7, 4)

KEYS: list[Any] = [
    0,
    -1,
    (2, -3),
    slice(None),
    slice(1, 4),
    slice(-3, None),
    slice(None, -2),
    slice(2, 100),
    slice(-100, 3),
    slice(4, 2),
    slice(None, None, 2),
    slice(1, None, 3),
    slice(None, None, -1),
    slice(None, None, -2),
    slice(4, 0, -1),
    slice(-2, -6, -3),
    slice(1, 5, -1),
    (slice(None), 3),
    (Ellipsis, 1),
    (Ellipsis, slice(None, None, 2)),
    (0, Ellipsis, slice(1, 3)),
    None,
    (None, slice(1, 3), Ellipsis, None),
    (slice(None, None, 2), slice(5, None, -2), slice(1, None)),
    (slice(None), slice(3, 3), slice(None, None, 2)),
    (1, 2, 3),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_indexing_is_numpys(compute: Compute, key: Any):
    np.testing.assert_array_equal(compute(lambda x: x[key], X), X[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_indexing_of_symbolic_axes_is_numpys(compute: Compute, key: Any):
    np.testing.assert_array_equal(compute(lambda x: x[key], X, shapes=[("n", "m", 4)]), X[key])


def test_a_slice_may_end_at_an_expression():
    builder = Builder()
    n = builder.symbol("n", 1, 100)
    x = builder.input("int32", (n, 3))
    builder.output(x[: n // 2], x[n // 2 :: 2], x[n - 1])
    array = np.arange(33, dtype=np.int32).reshape(11, 3)
    half, rest, last = evaluate(builder.graph(), array, n=11)
    np.testing.assert_array_equal(half, array[:5])
    np.testing.assert_array_equal(rest, array[5::2])
    np.testing.assert_array_equal(last, array[-1])


@pytest.mark.parametrize("key", [6, -7, (0, 0, 0, 0), (Ellipsis, Ellipsis), True, "a", 1.5])
def test_a_bad_index_is_refused(key: Any):
    with pytest.raises(InvalidGraphError):
        Builder().input("int32", (6, 7, 4))[key]


def test_an_index_that_a_symbol_puts_outside_is_refused_at_the_call():
    builder = Builder()
    builder.output(builder.input("int32", (builder.symbol("n", 1, 8),))[3])
    graph = builder.graph()
    assert evaluate(graph, np.arange(4, dtype=np.int32), n=4)[0] == 3
    with pytest.raises(CallInputError):
        evaluate(graph, np.arange(3, dtype=np.int32), n=3)


def test_an_integer_tensor_takes_rows_and_zeros_outside(compute: Compute):
    indices = np.array([[0, 5], [2, 2], [-1, 6]], np.int64)
    expected = np.where(((indices >= 0) & (indices < 6))[..., None, None], X[np.clip(indices, 0, 5)], 0)
    np.testing.assert_array_equal(compute(lambda x, i: x[i], X, indices), expected)
    np.testing.assert_array_equal(compute(lambda x, i: x[i], X, indices, shapes=[("n", 7, 4), ("k", 2)]), expected)


MOVES: list[tuple[str, Callable[[Tensor], Tensor], Callable[[Any], Any]]] = [
    ("reshape", lambda x: x.reshape(7, 24), lambda x: x.reshape(7, 24)),
    ("reshape-open", lambda x: x.reshape(3, -1, 2), lambda x: x.reshape(3, -1, 2)),
    ("permute", lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    ("permute-negative", lambda x: x.permute([-1, 0, 1]), lambda x: x.transpose(2, 0, 1)),
    ("transpose", lambda x: x.transpose(), lambda x: x.swapaxes(-1, -2)),
    ("transpose-two", lambda x: x.transpose(0, -1), lambda x: x.swapaxes(0, -1)),
    ("moveaxis", lambda x: moveaxis(x, 0, 2), lambda x: np.moveaxis(x, 0, 2)),
    ("flip", lambda x: x.flip((0, 2)), lambda x: np.flip(x, (0, 2))),
    ("flip-all", lambda x: x.flip(), np.flip),
    ("flatten", lambda x: x.flatten(1), lambda x: x.reshape(6, 28)),
    ("flatten-all", lambda x: x.flatten(), np.ravel),
    ("unsqueeze", lambda x: x.unsqueeze((0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    ("squeeze", lambda x: squeeze(x[:, 2:3]), lambda x: x[:, 2]),
    (
        "expand",
        lambda x: x.unsqueeze(1).expand(2, -1, 3, -1, -1),
        lambda x: np.broadcast_to(x[:, None], (2, 6, 3, 7, 4)),
    ),
    ("pad", lambda x: x.pad([(1, 0), (0, 2), (0, 0)]), lambda x: np.pad(x, [(1, 0), (0, 2), (0, 0)])),
    (
        "pad-value",
        lambda x: x.pad([(1, 0), (0, 2), (3, 3)], 9),
        lambda x: np.pad(x, [(1, 0), (0, 2), (3, 3)], constant_values=9),
    ),
]


@pytest.mark.parametrize(("name", "ours", "numpys"), MOVES, ids=[move[0] for move in MOVES])
def test_a_move_is_numpys(compute: Compute, name: str, ours: Callable[[Tensor], Tensor], numpys: Callable[[Any], Any]):
    np.testing.assert_array_equal(compute(ours, X), numpys(X))


@pytest.mark.parametrize(
    "name", ["permute", "transpose", "flip", "unsqueeze", "expand", "pad", "pad-value", "flatten-all"]
)
def test_a_move_of_symbolic_axes_is_numpys(compute: Compute, name: str):
    _, ours, numpys = next(move for move in MOVES if move[0] == name)
    np.testing.assert_array_equal(compute(ours, X, shapes=[("n", "m", 4)]), numpys(X))


def test_an_open_dim_is_solved_over_symbols():
    builder = Builder()
    n, m = builder.symbol("n", 1, 8), builder.symbol("m", 1, 8)
    x = builder.input("float32", (n, m, 6))
    assert x.reshape(n, -1).shape == (n, m * 6)
    assert x.reshape(-1, 3).shape == (n * m * 2, 3)
    assert x.reshape(-1, symbol("m")).shape == (n * 6, m)
    with pytest.raises(InvalidGraphError, match="-1"):
        x.reshape(-1, 4)


def test_a_move_that_does_nothing_writes_no_node():
    builder = Builder()
    x = builder.input("float32", (2, 3))
    assert x.reshape(2, 3) is x
    assert x.permute(0, 1) is x
    assert x.expand(2, 3) is x
    assert x.pad([(0, 0), (0, 0)]) is x
    assert x[:] is x
    assert x.cast("float32") is x


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.reshape(5, 5),
        lambda x: x.reshape(-1, -1),
        lambda x: x.reshape(-1, 5),
        lambda x: x.permute(0, 0),
        lambda x: x.permute(0),
        lambda x: x.expand(4, 3),
        lambda x: x.expand(3),
        lambda x: x.squeeze(0),
        lambda x: x.unsqueeze((0, 0)),
        lambda x: x.pad([(-1, 0), (0, 0)]),
        lambda x: x.pad([(1, 0)]),
        lambda x: x.flip(2),
        lambda x: split(x, [1, 3]),
        lambda x: cat([x, x[:1]], 1),
        lambda x: cat([x, x.flatten()]),
    ],
)
def test_an_impossible_move_is_refused(move: Callable[[Tensor], object]):
    with pytest.raises(InvalidGraphError):
        move(Builder().input("float32", (2, 3)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joining_and_splitting_are_numpys(compute: Compute, axis: int):
    parts = [X, X + 100, X - 100]
    np.testing.assert_array_equal(compute(lambda *x: cat(x, axis), *parts), np.concatenate(parts, axis))
    np.testing.assert_array_equal(compute(lambda *x: stack(x, axis), *parts), np.stack(parts, axis))
    sizes = [1, X.shape[axis] - 3, 2]
    for part in range(3):
        expected = np.split(X, [1, X.shape[axis] - 2], axis)[part]
        np.testing.assert_array_equal(compute(lambda x: split(x, sizes, axis)[part], X), expected)  # noqa: B023


def test_joined_symbolic_dims_add_up(compute: Compute):
    other = X[:4]
    actual = compute(lambda x, y: cat([x, y], 0), X, other, shapes=[("n", 7, 4), ("m", 7, 4)])
    np.testing.assert_array_equal(actual, np.concatenate([X, other]))


def test_a_view_addresses_the_row_major_storage(compute: Compute):
    actual = compute(lambda x: view(x, (3, 2), (1, 4), 5), X)
    np.testing.assert_array_equal(actual, np.lib.stride_tricks.as_strided(X.reshape(-1)[5:], (3, 2), (4, 16)))

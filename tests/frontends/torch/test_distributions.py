"""Random numbers have the moments of torch's distributions, and equal ones follow from equal keys."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tensorkiln import Client
from tests.frontends.here import Here

from .exports import calls, loaded

MOMENTS = {
    "exponential": (0, 0.5, 0.5),
    "whole numbers from 3 to below 7": (1, 4.5, np.sqrt(1.25)),
    "floats from -2 to below 2": (2, -0.5, np.sqrt(1.25)),
    "floats from 0 to below 4": (3, 1.5, np.sqrt(1.25)),
    "normal around a tensor": (4, 0.0, np.sqrt(5.0)),
    "normal of deviations": (5, 1.0, 1.0),
    "normal of both": (6, 0.0, np.sqrt(2.0)),
    "normal of numbers": (7, 1.0, 3.0),
    "log-normal": (8, np.exp(0.125), np.sqrt(np.expm1(0.25) * np.exp(0.25))),
    "geometric": (9, 1 / 0.3, np.sqrt(0.7) / 0.3),
    "exponential of 16 bits": (14, 1.0, 1.0),
}


@pytest.fixture(scope="module")
def drawn() -> list[np.ndarray[Any, Any]]:
    model, (call,) = loaded("statistics", "distributions"), calls("statistics", "distributions")
    compiled = model.compile(client=cast(Client, Here()))
    first, again, other = (list(compiled(*call.arguments, random_key=np.uint64(key)).values()) for key in (7, 7, 8))
    assert all(np.array_equal(own, same) for own, same in zip(first, again, strict=True))
    assert not any(np.array_equal(first[place], other[place]) for place in range(12))
    assert [each.shape for each in first] == [each.shape for each in call.results]
    return [each.astype(np.float64) for each in first]


@pytest.mark.parametrize("name", MOMENTS)
def test_the_mean_and_the_deviation_are_those_of_the_distribution(drawn: list[np.ndarray[Any, Any]], name: str) -> None:
    place, mean, deviation = MOMENTS[name]
    values = drawn[place]
    assert abs(values.mean() - mean) < 5 * deviation / np.sqrt(values.size)
    assert abs(values.std() / deviation - 1) < 0.15


def test_draws_stay_in_their_range(drawn: list[np.ndarray[Any, Any]]) -> None:
    assert set(np.unique(drawn[1])) == {3, 4, 5, 6}
    assert set(np.unique(drawn[2])) == {-2, -1, 0, 1}
    assert drawn[9].min() == 1
    assert drawn[0].min() > 0


def test_half_of_the_numbers_of_a_cauchy_distribution_are_within_1(drawn: list[np.ndarray[Any, Any]]) -> None:
    assert abs((np.abs(drawn[10]) < 1).mean() - 0.5) < 0.06


def test_classes_are_drawn_by_their_weights(drawn: list[np.ndarray[Any, Any]]) -> None:
    shares = np.bincount(drawn[11][0].astype(int), minlength=4) / 2000
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7, 0.0], atol=0.06)
    assert set(np.unique(drawn[11][1])) == {2}


def test_classes_without_replacement_are_different(drawn: list[np.ndarray[Any, Any]]) -> None:
    assert all(len(set(row)) == 3 for row in drawn[12].tolist())


def test_a_hard_sample_has_a_single_class(drawn: list[np.ndarray[Any, Any]]) -> None:
    assert drawn[13].sum(-1).tolist() == [1.0, 1.0]
    assert drawn[13][1].tolist() == [0.0, 0.0, 1.0, 0.0]

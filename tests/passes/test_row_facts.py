"""What the stages of a row tell about its values: exponents below a maximum, and shares of a sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from passes.emit.row_facts import facts_of
from passes.loops.collapse import collapse
from tensorkiln.build import Builder, Tensor, exp2, flip, relu, softmax
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.passes.modules import bodies, body, output

ROWS = (40, 200)


def row(make: Callable[[Tensor], Tensor], dtype: str = "float32") -> Graph:
    b = Builder()
    return output(b, make(b.input(dtype, ROWS)))


def peak(x: Tensor) -> Tensor:
    return x.max(1, keepdims=True)


KNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": softmax,
    "of scaled numbers": lambda x: softmax(x * 0.125),
    "of computed numbers": lambda x: softmax(relu(x) * 3.0 - 1.0),
    "without a factor": lambda x: exp2(x - peak(x)).sum(1),
    "with a positive factor": lambda x: exp2((x - peak(x)) * 0.5).sum(1),
}
UNKNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "a negative factor": lambda x: exp2((x - peak(x)) * -0.5).sum(1),
    "another element": lambda x: exp2(x + 1.0 - peak(x)).sum(1),
    "an element at another place": lambda x: exp2(flip(x, 0) - peak(x)).sum(1),
    "the reverse": lambda x: exp2(peak(x) - x).sum(1),
    "a minimum": lambda x: exp2(x - x.min(1, keepdims=True)).sum(1),
    "a mean": lambda x: exp2(x - x.mean(1, keepdims=True)).sum(1),
    "the maximum of a part": lambda x: exp2(x[:, :100] - peak(x[:, 100:])).sum(1),
    "the maximum of columns": lambda x: exp2(x - x.max(0, keepdims=True)).sum(1),
    "two of which one is larger": lambda x: (exp2(x - peak(x)) + exp2(x * 2.0 - peak(x))).sum(1),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_a_distance_from_the_maximum_of_its_row_is_no_positive_exponent(kind: str) -> None:
    assert facts_of(collapse(body(row(KNOWN[kind])))).peaks


@pytest.mark.parametrize("kind", [kind for kind in UNKNOWN if not kind.startswith("two")])
def test_other_exponents_may_be_positive(kind: str) -> None:
    b = Builder()
    graph = output(b, UNKNOWN[kind](b.input("float32", ROWS)))
    assert not any(facts_of(each).peaks for each in map(collapse, bodies(graph)))


@pytest.mark.parametrize("kind", [*KNOWN, *UNKNOWN])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_numbers_are_those_of_numpy(kind: str, dtype: str) -> None:
    graph = row({**KNOWN, **UNKNOWN}[kind], dtype)
    x = np.random.default_rng(5).normal(0, 30, ROWS).astype(dtype)
    x[0], x[1, 3], x[2, ::2] = -200, np.nan, -np.inf
    (made,), (expected,) = checked.run_graph(graph, x), evaluate(graph, x)
    np.testing.assert_allclose(made, expected, rtol=3e-5, atol=1e-30)

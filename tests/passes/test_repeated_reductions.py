"""Reductions of elements that repeat along an axis are computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, expand, ones, pad, permute, relu, transpose, where
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, evaluate
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate as reference
from tests import checked
from tests.compiled import compiled
from tests.filecheck import check_ir
from tests.passes.modules import decomposed, output

Write = Callable[[Builder, Dim], Tensor]


def stretched(b: Builder, n: Dim, dtype: str = "float32") -> Tensor:
    """(5, n, 7), the same along n."""
    return expand(b.input(dtype, (5, 1, 7)), (5, n, 7))


def of_ones(b: Builder, n: Dim) -> Tensor:
    """The gradient of the sum of a layer's results by its weights."""
    x = b.input("float32", (6, 7))
    return transpose(x) @ expand(ones(b, (1, 1)), (6, n))


ONCE: dict[str, Write] = {
    "an expansion": lambda b, n: stretched(b, n).sum(2),
    "an expansion, the largest": lambda b, n: stretched(b, n).max((0, 2)),
    "an expansion, the axis kept": lambda b, n: stretched(b, n).sum(2, keepdims=True),
    "halves": lambda b, n: stretched(b, n, "float16").sum(0),
    "permuted": lambda b, n: permute(stretched(b, n), (1, 2, 0)).sum(1),
    "computed": lambda b, n: relu(stretched(b, n) * 2.0 - stretched(b, n)).sum(2),
    "chosen": lambda b, n: where(stretched(b, n) > 1.0, stretched(b, n), 3.0).sum(2),
    "products of ones": of_ones,
    "two axes": lambda b, n: expand(b.input("float32", (1, 1, 7)), (5, n, 7)).sum(2),
}
APART: dict[str, Write] = {
    "an expansion along the reduced axis": lambda b, n: stretched(b, n).sum(1),
    "factors that repeat along different axes": lambda b, n: b.input("float32", (6, 4)) @ b.input("float32", (4, n)),
    "a padded expansion": lambda b, n: pad(stretched(b, n), [(0, 0), (1, 0), (0, 0)]).sum(2),
    "a number that zeros surround": lambda b, n: pad(expand(b.input("float32", (1, 1)), (3, n)), [(1, 0), (0, 1)]).sum(
        0
    ),
}


def graph_of(write: Write, least: int = 1) -> Graph:
    b = Builder("repeated")
    return output(b, write(b, b.symbol("n", least, 64)))


def largest(graph: Graph, n: int) -> int:
    """The most elements that a reduction of the decomposed graph combines."""
    text = str(decomposed(graph))
    found: list[int] = []
    for line in text.splitlines():
        if '"kiln.reduce_axis"' in line:
            shape = line.split(": (tensor<")[1].split(">")[0].split("x")[:-1]
            found.append(int(np.prod([n if size == "?" else int(size) for size in shape])))
    return max(found)


@pytest.mark.parametrize("name", ONCE)
def test_elements_that_repeat_are_reduced_once(name: str) -> None:
    assert largest(graph_of(ONCE[name]), 1000) < 1000


@pytest.mark.parametrize("name", APART)
def test_elements_that_differ_are_all_reduced(name: str) -> None:
    assert largest(graph_of(APART[name]), 1000) >= 1000


def test_an_axis_that_may_be_empty_is_reduced_as_it_is() -> None:
    assert largest(graph_of(ONCE["an expansion"], least=0), 1000) >= 1000


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("name", [*ONCE, *APART])
def test_repeated_results_are_those_of_the_reference(name: str, least: int) -> None:
    graph = graph_of({**ONCE, **APART}[name], least)
    compilation = compiled(graph)
    for n in (least, 1, 9):
        rng = np.random.default_rng(n)
        shapes = [[evaluate(dim, {"n": n}) for dim in graph.types[var].shape] for var in graph.input_vars]
        arrays = [
            rng.integers(-5, 6, shape).astype(DType(graph.types[var].dtype).numpy)
            for var, shape in zip(graph.input_vars, shapes, strict=True)
        ]
        (found,) = checked.run(compilation, *arrays, n=n)
        np.testing.assert_array_equal(found, reference(graph, *arrays, n=n)[0])


def test_a_repeated_sum_is_expanded_behind_it() -> None:
    b = Builder("repeated")
    check_ir(
        decomposed(output(b, stretched(b, 9).sum(2))),
        """
        // CHECK: %[[ONE:.*]] = "kiln.shrink"{{.*}} -> tensor<5x1x7xf32>
        // CHECK: %[[SUM:.*]] = "kiln.reduce_axis"(%[[ONE]]) {{.*}} -> tensor<5x1xf32>
        // CHECK: "kiln.expand"(%[[SUM]]) {{.*}} -> tensor<5x9xf32>
        """,
    )

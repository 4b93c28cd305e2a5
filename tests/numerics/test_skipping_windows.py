"""Windows that step over every other column: the pack of an image loads these with the columns between them."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, conv2d
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import proven, runs_here
from tests.passes.modules import after, output

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"]


def strided(dtype: str, width: int, padding: int, stride: tuple[int, int] = (2, 2)) -> Graph:
    b = Builder("strided")
    x, weights = b.input(dtype, (2, 3, 9, width)), b.input(dtype, (20, 3, 3, 3))
    return output(b, conv2d(x, weights, stride=stride, padding=padding))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("stride", "skips"), [((1, 2), True), ((2, 1), False), ((1, 3), False)])
def test_a_pack_skips_columns_where_masked_loads_are_instructions(
    stride: tuple[int, int], skips: bool, target: str
) -> None:
    text = str(after("realise", strided("float32", 37, 0, stride), target))
    assert ("_skipping" in text) == (skips and target != "cpu:x86-64-v2")
    assert "@pack_float32_float32" in text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("width", [3, 31, 32, 33, 34, 63, 67])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_pack_reads_no_column_behind_the_last(dtype: str, width: int, padding: int, target: str) -> None:
    graph = strided(dtype, width, padding)
    made = proven(graph, target)
    if not runs_here(target):
        pytest.skip(f"this processor lacks instructions of {target}")
    rng = np.random.default_rng(width)
    shapes = [[expr.evaluate(dim, {}) for dim in graph.types[var].shape] for var in graph.input_vars]
    arrays = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    (result,) = checked.run(made, *arrays, threads=2)
    np.testing.assert_array_equal(result, evaluate(graph, *arrays)[0])

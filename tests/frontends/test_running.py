"""Running reductions of long axes, which are divided into blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.composed import running
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled

COMBINE: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "sum": (lambda table: table.sum([-1], dtype=table.dtype), 0),
    "prod": (lambda table: table.prod([-1], dtype=table.dtype), 1),
    "max": (lambda table: table.max([-1]), float("-inf")),
}
NUMPY = {"sum": np.cumsum, "prod": np.cumprod, "max": np.maximum.accumulate}


def graph_of(
    shape: tuple[int, ...],
    axis: int,
    name: str,
    dtype: str = "float32",
    *,
    is_reversed: bool = False,
    is_exclusive: bool = False,
) -> Graph:
    b = Builder("running")
    b.output(running.running(b.input(dtype, shape), axis, *COMBINE[name], is_reversed, is_exclusive))
    return b.graph()


@pytest.mark.parametrize("name", COMBINE)
@pytest.mark.parametrize("extent", [running.LONG - 1, running.LONG, 5 * running.BLOCK + 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_running_reduction_is_numpys(extent: int, name: str, axis: int) -> None:
    shape = (extent, 3) if axis == 0 else (3, extent)
    values = 1 + np.random.default_rng(1).standard_normal(shape).astype(np.float32) / 64
    graph = graph_of(shape, axis, name)
    expected = NUMPY[name](values.astype(np.float64), axis)
    for found in (evaluate(graph, values), checked.run(compiled(graph), values)):
        np.testing.assert_allclose(found[0], expected, 2e-5)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("is_exclusive", [False, True])
def test_blocks_keep_the_direction_and_leave_the_element_out(is_reversed: bool, is_exclusive: bool) -> None:
    values = np.random.default_rng(2).integers(-9, 9, (2, 300))
    graph = graph_of((2, 300), 1, "sum", "int64", is_reversed=is_reversed, is_exclusive=is_exclusive)
    turned = values[:, ::-1] if is_reversed else values
    expected = np.cumsum(turned, 1) - (turned if is_exclusive else 0)
    expected = expected[:, ::-1] if is_reversed else expected
    for found in (evaluate(graph, values), checked.run(compiled(graph), values)):
        np.testing.assert_array_equal(found[0], expected)


def test_no_element_after_another_reaches_it() -> None:
    values = np.zeros((1, 400), np.float32)
    values[0, 200], values[0, 300] = np.inf, np.nan
    (found,) = checked.run(compiled(graph_of((1, 400), 1, "sum")), values)
    assert (found[0, :200] == 0).all()
    assert np.isposinf(found[0, 200:300]).all()
    assert np.isnan(found[0, 300:]).all()


def test_the_work_of_a_long_axis_grows_with_the_axis() -> None:
    def operations(extent: int) -> float:
        analysis = compiled(graph_of((8, extent), 1, "sum")).program.schedule.analysis
        return sum(item.est_ns for item in analysis)

    assert operations(4096) < 40 * operations(256)


@pytest.mark.parametrize(("dtype", "most"), [("float16", running.MAX_RUNNING), ("float32", 1 << 18)])
def test_an_axis_beyond_the_limit_is_refused(dtype: str, most: int) -> None:
    with pytest.raises(UnsupportedGraphError, match=f"may be more than {most}"):
        graph_of((1, most + 1), 1, "sum", dtype)


def test_an_axis_with_many_blocks_is_numpys() -> None:
    values = np.random.default_rng(3).integers(-9, 9, (2, 32000))
    graph = graph_of((2, 32000), 1, "sum", "int64")
    for found in (evaluate(graph, values), checked.run(compiled(graph), values, threads=2)):
        np.testing.assert_array_equal(found[0], np.cumsum(values, 1))

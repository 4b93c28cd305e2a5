"""Long reductions to few results on a CPU: several work-groups, the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled
from tests.passes.modules import output

V3 = "cpu:x86-64-v3"
SHAPES: dict[tuple[int, ...], tuple[int, ...]] = {
    (1 << 20,): (0,),
    ((1 << 20) + 5,): (0,),
    (1031, 1024): (0,),
    (3, 400, 900): (1, 2),
    (2, 700, 777): (1,),
}
"""Shapes, some with steps that are left over, and the axes that are reduced."""


def reduced(kind: str, dtype: str, shape: Any, axes: Any) -> Graph:
    b = Builder("reduced")
    x = b.input(dtype, shape)
    return output(b, {"sum": x.sum, "max": x.max, "prod": x.prod, "mean": x.mean}[kind](axis=axes))


def groups(graph: Graph, target: str = V3) -> list[Any]:
    """The work-groups of each kernel."""
    return [kernel.global_size[0] for kernel in compiled(graph, target).program.kernels]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("kind", "dtype"), [("sum", "float32"), ("sum", "int16"), ("max", "float32"), ("prod", "uint8")]
)
def test_both_steps_give_what_one_would(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    graph = reduced(kind, dtype, shape, SHAPES[shape])
    first, *_ = groups(graph)
    assert first > 1
    random = np.random.default_rng(3)
    draw: Any = random.standard_normal(shape) + 0.5 if dtype == "float32" else random.integers(1, 9, shape)
    array = draw.astype(dtype)
    (made,) = checked.run_graph(graph, array)
    exact = array.astype(np.float64) if dtype == "float32" else array
    reference = {"sum": np.sum, "max": np.max, "prod": np.prod}[kind](exact, axis=SHAPES[shape])
    expected = reference if dtype == "float32" else reference.astype(dtype)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_a_nan_in_any_part_is_the_maximum() -> None:
    graph = reduced("max", "float32", (1 << 20,), (0,))
    for place in (0, 1 << 19, (1 << 20) - 1):
        array = np.zeros(1 << 20, np.float32)
        array[place] = np.nan
        assert np.isnan(checked.run_graph(graph, array)[0])


@pytest.mark.parametrize(("least", "count"), [(1 << 20, 2), (1, 1)])
def test_a_symbolic_length_is_split_if_it_is_long_at_every_call(least: int, count: int) -> None:
    b = Builder("symbolic")
    n = b.symbol("n", least, 1 << 21)
    graph = output(b, b.input("float32", (n,)).sum())
    assert len(groups(graph)) == count
    array = np.random.default_rng(5).random((1 << 20) + 77, np.float32)
    (total,) = checked.run_graph(graph, array, n=array.size)
    np.testing.assert_allclose(total, array.sum(dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1 << 19,), (0,)), ((64, 1 << 16), (1,)), ((100, 1 << 14), (0,)), ((1 << 10, 2, 1 << 10), (0, 2))],
    ids=["few elements", "many rows", "many columns", "axes apart"],
)
def test_other_reductions_take_one_step(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    assert len(groups(reduced("sum", "float32", shape, axes))) == 1


def test_a_product_of_matrices_is_left_to_contractions() -> None:
    b = Builder("skinny")
    graph = output(b, b.input("float32", (1, 1 << 18)) @ b.input("float32", (1 << 18, 4)))
    assert len(groups(graph)) == 1

"""Products of what a reshape merged behind a permutation: heads of attention, windows of an image, flattened images."""

from __future__ import annotations

import math
from itertools import product
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.compile import CompileRequest
from passes.loops.domain import Loop
from passes.loops.index_space import IndexSpace
from passes.loops.parts import in_parts
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, relu
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tests import checked, emulated
from tests.compiled import compiled, runs_here, target, with_texts
from tests.filecheck import check_ir
from tests.numerics.against_reference import compare, normal_arrays
from tests.numerics.cases.turns import EXAMPLES


def heads(b: Builder) -> Tensor:
    """The heads of attention before their projection: the depth is merged."""
    x = b.input("float32", (2, 4, 24, 16)).permute((0, 2, 1, 3)).reshape((2, 24, 64))
    return x @ b.parameter("float32", (64, 48)) + b.input("float32", (2, 24, 48))


def windows(b: Builder) -> Tensor:
    """The windows of an image: the rows are merged."""
    x = b.input("float32", (1, 14, 21, 32)).reshape((1, 2, 7, 3, 7, 32)).permute((0, 1, 3, 2, 4, 5))
    return relu(x.reshape((6, 49, 32)) @ b.parameter("float32", (32, 48)) + b.parameter("float32", (48,)))


def windows_of_heads(b: Builder) -> Tensor:
    """Rows and depth are merged."""
    x = b.input("float32", (4, 6, 3, 4, 16)).permute((1, 3, 0, 2, 4)).reshape((24, 192))
    return x @ b.parameter("float32", (192, 40))


def of_any_batch(b: Builder) -> Tensor:
    n = b.symbol("n", 1, 40)
    x = b.input("float32", (n, 4, 9, 16)).permute((0, 2, 1, 3)).reshape((n, 9, 64))
    return x @ b.parameter("float32", (64, 32))


def merged_on_the_right(b: Builder) -> Tensor:
    x = b.input("float32", (6, 4, 16)).permute((1, 0, 2)).reshape((24, 16))
    return b.parameter("float32", (40, 24)) @ x


CASES = {each.__name__: each for each in (heads, windows, windows_of_heads, of_any_batch, merged_on_the_right)}


def graph_of(name: str) -> Graph:
    b = Builder(name)
    b.output(CASES[name](b))
    return b.graph()


@pytest.mark.parametrize("isa", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize("name", CASES)
def test_a_product_of_merged_dimensions_is_a_contraction(name: str, isa: str) -> None:
    graph = graph_of(name)
    made = compiled(graph, isa, texts=["schedule"])
    assert 'kiln.strategy = "contraction"' in made.dumps["schedule"]
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    for size in (1, 5):
        symbols = dict.fromkeys(graph.symbols, size)
        arrays = normal_arrays(graph, 3, **symbols)
        compare(checked.run(made, *arrays, threads=2, **symbols), graph, arrays, **symbols)


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_computes_a_product_of_merged_dimensions(name: str) -> None:
    graph = graph_of(name)
    symbols = dict.fromkeys(graph.symbols, 3)
    arrays = normal_arrays(graph, 3, **symbols)
    compare(emulated.run(graph, *arrays, **symbols), graph, arrays, **symbols)


def test_the_depth_of_merged_heads_has_loops_of_its_own_for_every_target() -> None:
    made = compiled(graph_of("heads"), texts=["to-linalg"])
    check_ir(
        made.dumps["to-linalg"],
        """
        // CHECK-DAG: affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
        // CHECK-DAG: affine_map<(d0, d1, d2, d3, d4) -> (d3 * 16 + d4, d2)>
        // CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
        """,
    )


@st.composite
def merged(draw: st.DrawFn) -> Graph:
    """A product whose rows and depth are dimensions of a permuted value, merged."""
    extents = draw(st.lists(st.integers(1, 5), min_size=3, max_size=5))
    order = draw(st.permutations(range(len(extents))))
    shape = [extents[axis] for axis in order]
    split = draw(st.integers(1, len(shape) - 1))
    b = Builder("merged")
    rows, depth, columns = math.prod(shape[:split]), math.prod(shape[split:]), draw(st.integers(8, 40))
    x = b.input("float32", tuple(extents)).permute(tuple(order)).reshape((rows, depth))
    if draw(st.booleans()):
        y = x @ b.parameter("float32", (depth, columns))
    else:
        y = b.parameter("float32", (columns, rows)) @ x
    b.output(relu(y) if draw(st.booleans()) else y)
    return b.graph()


@settings(max_examples=12 * EXAMPLES)
@given(merged(), st.sampled_from(["cpu:native", "cpu:x86-64-v3"]), st.sampled_from(["auto", "none"]))
def test_any_merged_dimensions_give_what_the_reference_gives(
    graph: Graph, isa: str, schedule: Literal["auto", "none"]
) -> None:
    arrays = normal_arrays(graph, 3)
    made = with_texts(CompileRequest(graph, target(isa), CompileOptions(schedule=schedule)))
    compare(checked.run(made, *arrays, threads=3), graph, arrays)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_parts_of_a_loop_walk_it_in_order(extents: list[int]) -> None:
    space = IndexSpace({})
    whole = space.add("k", math.prod(extents))
    loop = Loop("k", math.prod(extents), is_reduction=True)
    parts = in_parts([loop], space.unflatten(whole, extents), space)
    if parts is None:
        assert sum(extent > 1 for extent in extents) < 2
        return
    assert [each.extent for each in parts.loops] == [extent for extent in extents if extent > 1]
    points = product(*(range(int(str(each.extent))) for each in parts.loops))
    names = [each.name for each in parts.loops]
    walked = [expr.evaluate(parts.values["k"], dict(zip(names, point, strict=True))) for point in points]
    assert walked == list(range(math.prod(extents)))

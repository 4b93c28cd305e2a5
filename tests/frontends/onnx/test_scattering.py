"""Scatters that combine: duplicates, negative indices and the old elements; large networks on graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from tensorkiln.expr import Dim, bounds, product
from tensorkiln.frontends.onnx import load
from tensorkiln.nodes import Scatter
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled

Array = np.ndarray[Any, Any]
COMBINED: dict[str, Callable[..., Any]] = {
    "none": lambda _, update: update,
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def network(form: str, nodes: str, edges: str, width: int) -> ModelProto:
    """Two layers: features are multiplied, gathered by edge, added at the edges' ends, and divided by their number."""
    how = 'axis = 0, reduction = "add"'
    put = {
        "elements": f"ends = Expand(rows, wide) {{sum}} = ScatterElements<{how}>(zeros, ends, {{of}})",
        "nd": '{sum} = ScatterND<reduction = "add">(zeros, rows, {of})',
    }[form]
    first, second = put.format(sum="s", of="m"), put.replace("ends", "ends2").format(sum="s2", of="m2")
    return parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[{nodes}, {width}] x, int64[{edges}] from, int64[{edges}] to, float[{width}, {width}] w)
          => (float[{nodes}, {width}] y)
        <int64[1] axis = {{1}}, float one = {{1}}>
        {{
          shape = Shape(x)
          zeros = ConstantOfShape(shape)
          count = Shape<start = 0, end = 1>(x)
          none = ConstantOfShape(count)
          edges = Shape(from)
          ones = Expand(one, edges)
          degrees = ScatterElements<axis = 0, reduction = "add">(none, to, ones)
          atleast = Max(degrees, one)
          divisors = Unsqueeze(atleast, axis)
          rows = Unsqueeze(to, axis)
          width = Shape<start = 1, end = 2>(x)
          wide = Concat<axis = 0>(edges, width)
          h = MatMul(x, w)
          m = Gather<axis = 0>(h, from)
          {first}
          d = Div(s, divisors)
          r = Relu(d)
          h2 = MatMul(r, w)
          m2 = Gather<axis = 0>(h2, from)
          {second}
          y = Div(s2, divisors)
        }}"""
    )


@pytest.mark.parametrize("form", ["elements", "nd"])
def test_a_network_on_a_large_graph_takes_no_table_of_places_and_updates(form: str) -> None:
    graph = load(network(form, "10000", "100000", 64)).graph
    assert sum(isinstance(node, Scatter) for node in graph.nodes) == 3
    sizes: list[Dim] = [product(kind.shape) for kind in graph.types.values()]
    # A product of matrices is a sum over the products of their elements.
    assert max(bounds(size, graph.symbols)[1] for size in sizes) <= 10_000 * 64 * 64


@pytest.mark.parametrize("form", ["elements", "nd"])
def test_a_network_on_a_graph_of_any_size(form: str) -> None:
    model = load(network(form, "n", "e", 20), symbols={"n": (1, 100), "e": (1, 1000)})
    program = compiled(model.graph)
    rng = np.random.default_rng(5)
    for n, e in ((1, 1), (30, 200), (100, 7)):
        x, weights = rng.standard_normal((n, 20)), rng.standard_normal((20, 20))
        ends = rng.integers(0, n, (2, e))
        given = model.arguments(
            x=x.astype(np.float32), w=weights.astype(np.float32), **{"from": ends[0], "to": ends[1]}
        )
        (found,) = checked.run(program, *given, n=n, e=e)
        (expected,) = evaluate(model.graph, *given, n=n, e=e)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
        for turn in range(2):
            total, degrees = np.zeros((n, 20)), np.zeros((n, 1))
            np.add.at(total, ends[1], (x @ weights)[ends[0]])
            np.add.at(degrees, ends[1], 1)
            mean = total / np.maximum(degrees, 1)
            x = mean if turn else np.maximum(mean, 0)
        np.testing.assert_allclose(found, x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float", "int32"])
@pytest.mark.parametrize("how", COMBINED)
def test_elements_combine_with_the_data_in_order(how: str, dtype: str) -> None:
    model = load(
        parser.parse_model(
            f"""<ir_version: 10, opset_import: ["" : 18]>
            g ({dtype}[4, 5] x, int64[6, 3] i, {dtype}[6, 3] u) => ({dtype}[4, 5] y)
            {{ y = ScatterElements<axis = 0, reduction = "{how}">(x, i, u) }}"""
        )
    )
    rng = np.random.default_rng(8)
    kind = np.float32 if dtype == "float" else np.int32
    x, updates = (rng.integers(1, 9, size).astype(kind) for size in ((4, 5), (6, 3)))
    indices = rng.integers(-4, 4, (6, 3))
    (found,) = checked.run(compiled(model.graph), *model.arguments(x=x, i=indices, u=updates))
    for row, column in np.ndindex(indices.shape):
        place = indices[row, column], column
        x[place] = COMBINED[how](x[place], updates[row, column])
    np.testing.assert_array_equal(found, x)

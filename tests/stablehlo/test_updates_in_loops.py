"""Updates of slices in loops whose turns data counts: their positions, and the nodes that store them."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.graph import Graph
from tensorkiln.nodes import Scatter, While
from tensorkiln.reference import evaluate
from tests import checked

from .modules import module
from .oracle import agree, arguments, graph_of

LOOP = """
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %ahead = stablehlo.constant dense<2> : tensor<i32>
    %w:2 = stablehlo.while(%i = %a2, %s = %a0) : tensor<i32>, tensor<{whole}>
    cond {{
      %1 = stablehlo.compare LT, %i, %a3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %2 = stablehlo.dynamic_slice %s, {read}, sizes = [{sizes}]
        : (tensor<{whole}>, {starts}) -> tensor<{part}>
      %3 = stablehlo.add %2, %a1 : tensor<{part}>
      %4 = stablehlo.dynamic_update_slice %s, %3, {written}
        : (tensor<{whole}>, tensor<{part}>, {starts}) -> tensor<{whole}>
      %5 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %5, %4 : tensor<i32>, tensor<{whole}>
    }}
    %r0 = stablehlo.negate %w#1 : tensor<{whole}>"""

CASES = {
    "a row": ("6x4", "1x4", "%i, %zero"),
    "rows": ("6x4", "3x4", "%i, %zero"),
    "a column": ("6x4", "6x1", "%zero, %i"),
    "an element": ("6x4", "1x1", "%i, %i"),
    "a window": ("6x4x3", "2x2x3", "%i, %i, %zero"),
    "a window from a known row on": ("6x4x3", "2x2x3", "%ahead, %i, %zero"),
    "planes beside an axis taken whole": ("5x2x4", "1x2x2", "%i, %zero, %i"),
    "a plane behind an axis": ("3x5x2", "3x1x2", "%zero, %i, %zero"),
    "an element of a vector": ("7", "1", "%i"),
}


def updating(name: str, kind: str) -> str:
    """A loop from turn `a2` up to `a3` that adds `a1` to a slice of `a0` and writes the sum to another place."""
    whole, part, written = CASES[name]
    rank = len(whole.split("x"))
    body = LOOP.format(
        whole=f"{whole}x{kind}",
        part=f"{part}x{kind}",
        sizes=part.replace("x", ", "),
        starts=", ".join(["tensor<i32>"] * rank),
        read=", ".join(["%ahead"] * rank),
        written=written,
    )
    return module([f"{whole}x{kind}", f"{part}x{kind}", "i32", "i32"], body, f"{whole}x{kind}")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["f32", "i8", "f16"])
def test_a_slice_is_written_where_it_fits(name: str, kind: str) -> None:
    text = updating(name, kind)
    given = arguments(text)[:2]
    graph = graph_of(text)
    call = checked.ready(graph)
    # Before the first position, within, and behind the last one: starts are clamped.
    for first, last in ((-2, 9), (0, 3), (2, 2), (6, 8)):
        arrays = [*given, np.array(first, np.int32), np.array(last, np.int32)]
        agree(text, arrays)
        for found, expected in zip(call(*arrays), evaluate(graph, *arrays), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_an_update_is_a_scatter_of_the_slice(name: str) -> None:
    (loop,) = (node for node in graph_of(updating(name, "f32")).nodes if isinstance(node, While))
    (scatter,) = (node for node in loop.body.nodes if isinstance(node, Scatter))
    assert scatter.init_var is not None


def test_rows_of_a_symbolic_number_are_written() -> None:
    text = updating("a row", "f32").replace("6x4xf32", "?x4xf32")
    graph = Graph.model_validate(translate(text, {"0.0": (1, 64)}).document)
    (symbol,) = graph.symbols
    call = checked.ready(graph)
    for rows, first, last in ((1, 0, 3), (5, -1, 4), (5, 3, 9), (3, 2, 2)):
        arrays = [np.ones((rows, 4), np.float32), np.arange(4, dtype=np.float32)[None], np.int32(first), np.int32(last)]
        for found, expected in zip(
            call(*arrays, **{symbol: rows}), evaluate(graph, *arrays, **{symbol: rows}), strict=True
        ):
            np.testing.assert_array_equal(found, expected)

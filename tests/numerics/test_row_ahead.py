"""Rows that are requested from memory while the exponentials of the row before are computed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from passes.cpu.row_ahead import LARGE
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, exp, softmax
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import proven
from tests.passes.modules import after, output

TARGET = "cpu:x86-64-v3"
LINES = 128 * 4 // 64
"""Cache lines of a chunk of float32."""


def rows_of(columns: int, rows: int | None = None, dtype: str = "float32") -> Graph:
    """A softmax of rows; without their number, of `n`."""
    b = Builder("rows")
    x = b.input(dtype, (rows or b.symbol("n", 1, LARGE // columns), columns))
    return output(b, softmax(x))


def prefetches(graph: Graph) -> list[str]:
    """What each prefetch of the realised kernels is for."""
    return re.findall(r"memref\.prefetch \S+, (read|write)", str(after("realise", graph, TARGET)))


def found(graph: Graph, rows: int, **symbols: int) -> None:
    """What a compiled graph gives, its memory watched, against the reference."""
    (var,) = graph.input_vars
    shape = [expr.evaluate(dim, symbols) for dim in graph.types[var].shape]
    x = np.random.default_rng(3).normal(0, 30, shape).astype(graph.types[var].dtype.numpy)
    x[0, ::3], x[-1, 5] = -np.inf, np.nan
    (result,) = checked.run(proven(graph, TARGET), x, threads=2, **symbols)
    (expected,) = evaluate(graph, x, **symbols)
    assert len(result) == rows
    np.testing.assert_allclose(result, expected, rtol=2e-6 if x.dtype == np.float32 else 1e-14, atol=1e-37)


def test_the_next_row_and_the_result_are_requested_by_chunks() -> None:
    assert prefetches(rows_of(1024, 4096)) == ["read"] * LINES + ["write"] * LINES


def test_rows_within_the_caches_are_not_prefetched() -> None:
    assert not prefetches(rows_of(1024, 64))


def test_a_single_stage_is_left_to_the_processor() -> None:
    b = Builder("map")
    assert not prefetches(output(b, exp(b.input("float32", (4096, 1024)))))


def test_rows_that_all_read_the_same_are_not_requested() -> None:
    b = Builder("shared")
    x, bias = b.input("float32", (4096, 1024)), b.input("float32", (1024,))
    assert prefetches(output(b, softmax(x + bias))) == ["read"] * LINES + ["write"] * LINES


@pytest.mark.parametrize("columns", [1024, 1000, 129, 127])
def test_rows_of_any_length_are_computed(columns: int) -> None:
    rows = LARGE // (4 * columns)
    graph = rows_of(columns, rows)
    assert prefetches(graph)
    found(graph, rows)


def test_rows_of_doubles_are_computed() -> None:
    graph = rows_of(300, 1000, "float64")
    assert len(prefetches(graph)) == 2 * 2 * LINES
    found(graph, 1000)


@pytest.mark.parametrize("rows", [1, 2, 77])
def test_any_number_of_rows_is_computed(rows: int) -> None:
    graph = rows_of(640)
    assert prefetches(graph)
    found(graph, rows, n=rows)


def test_a_result_that_takes_the_place_of_its_argument_is_requested() -> None:
    b = Builder("in_place")
    x: Tensor = b.input("float32", (1024, 640))
    graph = output(b, softmax(softmax(x * 0.5)))
    assert prefetches(graph)
    found(graph, 1024)

"""Extents that one graph spells by divisions that truncate, and affine maps by divisions that round down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, cast, cat, exp, matmul, softmax, transpose
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked, emulated
from tests.compiled import compiled

EXTENTS: dict[str, Callable[[Dim], Dim]] = {
    "truncated": lambda n: expr.add(expr.idiv(expr.sub(n, 1), 2), 1),
    "rounded-down": lambda n: expr.add(expr.floordiv(expr.sub(n, 1), 2), 1),
    "truncated-remainder": lambda n: expr.add(expr.mod(n, 7), 3),
    "both": lambda n: expr.maximum(expr.idiv(n, 3), expr.floordiv(n, 4)),
}
SIZES = {"n": 13, "batch": 2}


def _kept_rows(b: Builder, batch: Dim, q: Dim) -> Tensor:
    powers = exp(b.input("float32", (q, q)))
    return powers / powers.sum(-1, keepdims=True)


def _rows_of_batches(b: Builder, batch: Dim, q: Dim) -> Tensor:
    return softmax(b.input("float32", (batch, 4, q, 5)))


def _attention(b: Builder, batch: Dim, q: Dim) -> Tensor:
    queries, keys, values = (b.input("float32", (batch, 2, q, 8)) for _ in range(3))
    return matmul(softmax(matmul(queries, transpose(keys))), values)


def _columns(b: Builder, batch: Dim, q: Dim) -> Tensor:
    x = b.input("float32", (batch, q, q))
    return x - x.max(1, keepdims=True)


def _parts_in_place(b: Builder, batch: Dim, q: Dim) -> Tensor:
    rows = cast(b.input("float32", (1, 32, q, 3)).max(-1), "float16")
    return cat([rows, rows * 2], 1)


GRAPHS = (_kept_rows, _rows_of_batches, _attention, _columns, _parts_in_place)


def _graph(build: Callable[[Builder, Dim, Dim], Tensor], extent: Callable[[Dim], Dim]) -> Graph:
    b = Builder("extents")
    n, batch = b.symbol("n", 3, 40), b.symbol("batch", 1, 4)
    b.output(build(b, batch, extent(n)))
    return b.graph()


def _arrays(graph: Graph) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    shapes = ([expr.evaluate(dim, SIZES) for dim in graph.types[var].shape] for var in graph.input_vars)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_stages_share_their_rows_however_their_extents_are_spelled(build: Any, extent: str) -> None:
    graph = _graph(build, EXTENTS[extent])
    arrays = _arrays(graph)
    (expected,) = evaluate(graph, *arrays, **SIZES)
    (here,) = checked.run(compiled(graph), *arrays, **SIZES)
    np.testing.assert_allclose(here, expected, rtol=1e-5, atol=1e-6)
    if extent == "truncated":
        (there,) = emulated.run(graph, *arrays, **SIZES)
        np.testing.assert_allclose(there, expected, rtol=1e-5, atol=1e-6)

"""Products with weights from memory: each tile of rows prefetches its share of the panels of the next columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, relu
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import proven, runs_here
from tests.passes.modules import after, output

Array = np.ndarray[Any, Any]
AVX2, AVX512 = "cpu:x86-64-v3", "cpu:x86-64-v4"


def layer(depth: int, columns: int, rows: Dim | None = None, dtype: str = "float32") -> Graph:
    b = Builder("layer")
    x = b.input(dtype, (b.symbol("n", 1, 600) if rows is None else rows, depth))
    return output(b, relu(x @ b.parameter(dtype, (depth, columns))))


def asked(graph: Graph, target: str) -> list[str]:
    """What tiles prefetch to read it."""
    return re.findall(r"memref.prefetch [^,]*, (read, locality<\d>)", str(after("realise", graph, target)))


@pytest.mark.parametrize(("target", "rows"), [(AVX2, 24), (AVX512, 24), (AVX512, None)])
def test_large_weights_are_prefetched(target: str, rows: int | None) -> None:
    found = asked(layer(512, 1024, rows), target)
    assert found
    assert set(found) == {"read, locality<1>"}


def test_small_weights_stay_in_a_cache() -> None:
    assert not asked(layer(128, 256, 24), AVX512)


def test_weights_that_are_packed_at_each_call_are_in_a_cache() -> None:
    b = Builder("packed")
    graph = output(b, b.input("float32", (24, 512)) @ b.input("float32", (512, 1024)))
    assert not asked(graph, AVX512)


def arrays(depth: int, columns: int, dtype: str, rows: int) -> Iterator[Array]:
    rng = np.random.default_rng(rows)
    return (rng.standard_normal(shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))


@cache
def wanted(depth: int, columns: int, dtype: str, rows: int) -> Array:
    """What the reference gives, for all targets."""
    return evaluate(layer(depth, columns, dtype=dtype), *arrays(depth, columns, dtype, rows), n=rows)[0]


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    ("depth", "columns", "dtype"), [(700, 130, "float32"), (256, 520, "float32"), (300, 200, "float64")]
)
def test_products_of_any_number_of_rows_are_as_in_the_reference(
    depth: int, columns: int, dtype: str, target: str
) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    made = proven(layer(depth, columns, dtype=dtype), target)
    for rows in (1, 13, 29, 520):
        x, w = arrays(depth, columns, dtype, rows)
        (got,) = checked.run(made, x, w, n=rows)
        np.testing.assert_allclose(got, wanted(depth, columns, dtype, rows), 1e-4, 1e-4)

"""Loads of loops that are vectorised under a mask read what the mask says, also where LLVM would take them apart."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from passes.codegen.object_code import assembly
from passes.compile import Compilation
from tensorkiln.build import Builder, where
from tensorkiln.expr import Dim, floormod
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.target import Target
from tests import checked
from tests.compiled import compiled, proven

Array = np.ndarray[Any, Any]


def masked_sums(width: Dim | int | None) -> Graph:
    """Two sums of one row, of which LLVM knows how long it is at most; None is the rest of a symbol by 8."""
    b = Builder("masked")
    length = floormod(b.symbol("n", 0, 1000), 8) if width is None else width
    x, mask = b.input("float32", (3, length)), b.input("bool", (3, length))
    b.output(where(mask, x, 2.0).sum(1), x.sum(1))
    return b.graph()


@cache
def of_any_width() -> tuple[Graph, Compilation]:
    graph = masked_sums(None)
    return graph, proven(graph)


@pytest.mark.parametrize("width", range(1, 8))
def test_nothing_is_read_behind_the_end_of_a_short_row(width: int) -> None:
    rng = np.random.default_rng(width)
    arrays: tuple[Array, Array] = rng.standard_normal((3, width)).astype(np.float32), rng.random((3, width)) < 0.5
    fixed = masked_sums(width)
    for (graph, made), symbols in ((of_any_width(), {"n": 8 + width}), ((fixed, proven(fixed)), {})):
        found = checked.run(made, *arrays, **symbols)
        for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_no_row_is_loaded_without_its_mask() -> None:
    name = "cpu:x86-64-v4"
    text = assembly(compiled(masked_sums(None), name, texts=["translate"]).dumps["translate"], Target.parse(name))
    loads = [line for line in text.splitlines() if re.search(r"vmovups\t[^%]*\(.*\), %[xyz]mm\d+", line)]
    assert loads
    assert all("{%k" in line for line in loads)

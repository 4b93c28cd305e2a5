"""Launches against an independent count of the work: every element of a result is stored by exactly one thread.

A family of kernels is compiled once, with symbolic sizes, and launched at many; every access of every thread is checked
against the bounds of its buffer, and against those of other threads for races.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, matmul, pad, relu, scatter, softmax, transpose
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.expr import evaluate as value_of
from tensorkiln.reference import evaluate
from tests.compiled import compiled
from tests.emulated import TARGET, Array, Emulation

SHAPES = int(os.environ.get("KILN_SHAPES", "100"))


@dataclass(frozen=True)
class Family:
    """A graph of symbols `m`, `n` and `k`, the largest that each is drawn to be, and the strategies that it takes."""

    build: Callable[[Builder, Any, Any, Any], Tensor]
    most: tuple[int, int, int]
    dtype: str = "float32"


def _columns(b: Builder, m: Any, n: Any, k: Any) -> Tensor:
    return b.input("float32", (k, n)).sum(axis=0)


FAMILIES = {
    "elements": Family(lambda b, m, n, k: b.input("float32", (m, n)) * 2.0 + 1.0, (90, 150, 1)),
    "halves": Family(lambda b, m, n, k: relu(b.input("float16", (m, n))), (90, 150, 1)),
    "broadcast": Family(lambda b, m, n, k: b.input("float32", (m, 1, k)) + b.input("float32", (n, 1)), (20, 40, 30)),
    "transposed": Family(lambda b, m, n, k: transpose(b.input("int32", (m, n))), (120, 120, 1)),
    "padded": Family(lambda b, m, n, k: pad(b.input("float32", (m, n)), [(1, 2), (3, 0)]), (120, 120, 1)),
    "rows": Family(lambda b, m, n, k: b.input("float32", (m, n)).sum(axis=1), (40, 3000, 1)),
    "short rows": Family(lambda b, m, n, k: b.input("float32", (m, n, 7)).max(axis=2), (60, 60, 1)),
    "columns": Family(_columns, (1, 90, 60)),
    "middle": Family(lambda b, m, n, k: b.input("float32", (m, n, k)).sum(axis=1), (12, 60, 20)),
    "everything": Family(lambda b, m, n, k: b.input("float32", (m, n)).max(axis=(0, 1)), (60, 90, 1)),
    "softmax": Family(lambda b, m, n, k: softmax(b.input("float32", (m, n))), (9, 700, 1)),
    "product": Family(
        lambda b, m, n, k: relu(matmul(b.input("float32", (m, k)), b.input("float32", (k, n)))), (80, 90, 40)
    ),
    "batched product": Family(
        lambda b, m, n, k: matmul(b.input("float32", (3, m, k)), b.input("float32", (3, k, n))) + 1.0, (30, 40, 30)
    ),
    "scatter": Family(
        lambda b, m, n, k: scatter(b.input("int32", (m, n)), b.input("float32", (m, n)), 1, (m, k)), (20, 300, 200)
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_element_is_stored_by_exactly_one_thread(name: str) -> None:
    family = FAMILIES[name]
    builder = Builder("family")
    sizes = [builder.symbol(symbol, 1, most) for symbol, most in zip("mnk", family.most, strict=True)]
    builder.output(family.build(builder, *sizes))
    graph = builder.graph()
    compilation = compiled(graph, TARGET, texts=["translate"])
    numbers = np.random.default_rng(len(name))
    for seed in range(SHAPES):
        symbols = {symbol: int(numbers.integers(1, most + 1)) for symbol, most in zip("mnk", family.most, strict=True)}
        arrays = [_draw(numbers, graph.types[var].dtype, graph.types[var].shape, symbols) for var in graph.input_vars]
        emulation = Emulation(compilation, arrays, symbols)
        actual = emulation.run(seed=seed, watched=True)
        _check_stores(emulation)
        for found, wanted in zip(actual, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-4, atol=1e-4)


def _check_stores(emulation: Emulation) -> None:
    """What the graph asked for is stored once; a buffer that work-groups share to settle a scatter is not."""
    buffers = emulation.compilation.program.buffers
    for launched in emulation.launched:
        for number, counts in launched.stores.items():
            if buffers[number].role == "output":
                assert counts.min(initial=1) == counts.max(initial=1) == 1, (launched.kernel.name, number)


def _draw(numbers: np.random.Generator, dtype: DType, shape: Sequence[Dim], symbols: dict[str, int]) -> Array:

    sizes = tuple(value_of(dim, symbols) for dim in shape)
    if dtype.is_float:
        return numbers.standard_normal(sizes).astype(dtype.numpy)
    return numbers.integers(-3, 210, sizes).astype(dtype.numpy)

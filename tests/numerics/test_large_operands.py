"""Products of operands that may have more elements than 32 bits can count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, conv2d, flip, relu, softmax, transpose
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import proven, runs_here
from tests.passes.modules import after, output

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"]
MOST = {"n": 1 << 26, "m": 1 << 26, "keys": 1 << 12}
Inputs = Sequence[tuple[str, tuple[int | str, ...]]]


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return softmax(q @ transpose(k)) @ v


CASES: dict[str, tuple[Callable[..., Tensor], Inputs]] = {
    "rows": (lambda x, w: x @ w, [("float32", ("n", 70)), ("float32", (70, 40))]),
    "rows of batches": (lambda x, w: relu(x @ w), [("float32", ("n", "m", 48)), ("float32", (48, 33))]),
    "columns": (lambda w, x: w @ x, [("float32", (19, 70)), ("float32", (70, "n"))]),
    "columns in rows": (lambda w, x: w @ transpose(x), [("float32", (19, 70)), ("float32", ("n", 70))]),
    "columns in rows from the last": (
        lambda w, x: w @ transpose(flip(x, 0)),
        [("float32", (19, 70)), ("float32", ("n", 70))],
    ),
    "depth": (lambda x, y: transpose(x) @ y, [("float32", ("n", 33)), ("float32", ("n", 20))]),
    "depth from the last": (
        lambda x, y: transpose(flip(x, 0)) @ flip(y, 0),
        [("float32", ("n", 33)), ("float32", ("n", 20))],
    ),
    "depth of two axes": (
        lambda x, y: transpose(x.reshape((x.shape[0] * x.shape[1], 33))) @ y.reshape((y.shape[0] * y.shape[1], 20)),
        [("float32", ("n", "m", 33)), ("float32", ("n", "m", 20))],
    ),
    "depth of bytes": (
        lambda x, y: transpose(x).cast("int32") @ y.cast("int32"),
        [("int8", ("n", 33)), ("int8", ("n", 20))],
    ),
    "columns of bytes": (
        lambda w, x: w.cast("int32") @ transpose(x).cast("int32"),
        [("int8", (19, 70)), ("int8", ("n", 70))],
    ),
    "both of halves": (lambda x, y: x @ transpose(y), [("float16", ("n", 70)), ("float16", ("m", 70))]),
    "windows": (
        lambda x, w: conv2d(x, w, padding=1),
        [("float32", (1, 3, "n", 30)), ("float32", (20, 3, 3, 3))],
    ),
    "attention": (
        attention,
        [("float32", ("n", 40, 16)), ("float32", ("n", "keys", 16)), ("float32", ("n", "keys", 16))],
    ),
}


def graph_of(case: str) -> Graph:
    """The graph of a case; its operands may have 2^32 elements and more."""
    function, inputs = CASES[case]
    b = Builder("large")
    for name in sorted({size for _, shape in inputs for size in shape if isinstance(size, str)}):
        b.symbol(name, 1, MOST[name])
    return output(b, function(*(b.input(dtype, shape) for dtype, shape in inputs)))


def arrays_of(case: str, **sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes.values()))
    shapes = [
        (dtype, [size if isinstance(size, int) else sizes[size] for size in shape]) for dtype, shape in CASES[case][1]
    ]
    return [rng.integers(-4, 5, shape).astype(DType(dtype).numpy) for dtype, shape in shapes]


@pytest.mark.parametrize("case", CASES)
def test_products_of_large_operands_are_contractions(case: str) -> None:
    strategy = "chain" if CASES[case][0] is attention else "contraction"
    assert f'kiln.strategy = "{strategy}"' in str(after("schedule", graph_of(case), "cpu:x86-64-v4"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_products_of_large_operands_are_those_of_the_reference(case: str, target: str) -> None:
    graph = graph_of(case)
    compilation = proven(graph, target)
    if not runs_here(target):
        pytest.skip(f"this processor lacks instructions of {target}")
    for n, m, keys in ((1, 2, 70), (7, 3, 1), (150, 1, 5), (611, 2, 3)):
        sizes = {name: size for name, size in {"n": n, "m": m, "keys": keys}.items() if name in graph.symbols}
        arrays = arrays_of(case, **sizes)
        (result,) = checked.run(compilation, *arrays, threads=2, **sizes)
        np.testing.assert_allclose(result, evaluate(graph, *arrays, **sizes)[0], 1e-4, 1e-4)


def test_windows_of_images_whose_rows_are_too_far_apart_are_not_packed() -> None:
    b = Builder("large")
    x = b.input("float32", (1, 3, b.symbol("h", 1, 1 << 20), b.symbol("w", 1, 1 << 20)))
    graph = output(b, conv2d(x, b.input("float32", (20, 3, 3, 3)), padding=1))
    assert '"contraction"' not in str(after("schedule", graph, "cpu:x86-64-v4"))

"""Long epilogues: what follows a product or a convolution in its kernel, however many ops it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, conv2d, gelu, relu, silu, softplus, tanh
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tests.compiled import compiled, program, runs_here
from tests.emulated import run as emulated

Array = np.ndarray[Any, Any]
Epilogue = Callable[[Tensor], tuple[Tensor, ...]]

EPILOGUES: dict[str, Epilogue] = {
    "gelu": lambda y: (gelu(y),),
    "gelu and residual": lambda y: (gelu(y) + y,),
    "silu times gelu": lambda y: (silu(y) * gelu(y),),
    "mish": lambda y: (y * tanh(softplus(y)),),
    "gelu of gelu": lambda y: (gelu(gelu(y)),),
    "gelu, and whether it is positive": lambda y: (gelu(y), gelu(y) > 0, y),
}
EPSILON = {"float64": 2e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 8e-2}
"""What is allowed, relative to the size of the result: a few roundings of the sum over the depth."""


def feed_forward(shape: tuple[int, int, int], epilogue: Epilogue, dtype: str, *, is_symbolic: bool = False) -> Graph:
    """`epilogue(x @ w + c)` of x `(m, k)` and w `(k, n)`; symbolic in m and n where wanted."""
    m, k, n = shape
    b = Builder("feed_forward")
    rows, columns = (b.symbol("m", 1, 4 * m), b.symbol("n", 1, 4 * n)) if is_symbolic else (m, n)
    x, w, c = b.input(dtype, (rows, k)), b.input(dtype, (k, columns)), b.input(dtype, (columns,))
    b.output(*epilogue(x @ w + c))
    return b.graph()


def convolved(epilogue: Epilogue, *, is_symbolic: bool = False) -> Graph:
    """`epilogue(conv(x, w))` of images of 24 channels, 3 × 3, of which there are `batch`."""
    b = Builder("convolved")
    batch = b.symbol("batch", 1, 4) if is_symbolic else 2
    x, w = b.input("float32", (batch, 24, 13, 11)), b.input("float32", (40, 24, 3, 3))
    b.output(*epilogue(conv2d(x, w, padding=1)))
    return b.graph()


def arguments(graph: Graph, **symbols: int) -> list[Array]:
    """Values from -1 to 1, whose sums of products neither cancel to nothing nor leave float16."""
    generator = np.random.default_rng(7)
    shapes = [
        tuple(extent if isinstance(extent, int) else symbols[str(extent)] for extent in graph.types[var].shape)
        for var in graph.input_vars
    ]
    dtypes = [graph.types[var].dtype.numpy for var in graph.input_vars]
    return [generator.uniform(-1, 1, shape).astype(dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]


def agree(results: tuple[Array, ...], expected: tuple[Array, ...], epsilon: float) -> None:
    for result, wanted in zip(results, expected, strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if result.dtype == np.bool_:
            assert np.count_nonzero(result != wanted) <= result.size * epsilon
            continue
        wide = wanted.astype(np.float64)
        assert np.max(np.abs(result.astype(np.float64) - wide)) <= epsilon * max(1.0, float(np.max(np.abs(wide))))


def check(graph: Graph, target: str, epsilon: float, **symbols: int) -> None:
    check_program(program(compiled(graph, target), threads=2), graph, epsilon, **symbols)


def check_program(program: Program, graph: Graph, epsilon: float, **symbols: int) -> None:
    arrays = arguments(graph, **symbols)
    agree(program(*arrays, **symbols), evaluate(graph, *arrays, **symbols), epsilon)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_long_epilogue_of_a_product_computes_what_the_reference_does(epilogue: str, dtype: str) -> None:
    check(feed_forward((33, 40, 64), EPILOGUES[epilogue], dtype), "cpu:native", EPSILON[dtype])


@pytest.mark.parametrize("shape", [(32, 128, 512), (8, 128, 512), (64, 64, 256), (64, 64, 64), (230, 40, 530)])
def test_the_feed_forward_layer_of_a_transformer_computes_what_the_reference_does(shape: tuple[int, int, int]) -> None:
    check(feed_forward(shape, EPILOGUES["gelu"], "float32"), "cpu:native", EPSILON["float32"])


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_long_epilogue_is_right_on_every_level_of_x86(epilogue: str, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"this machine is no {target}")
    check(feed_forward((17, 20, 300), EPILOGUES[epilogue], "float32"), target, EPSILON["float32"])


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_long_epilogue_of_symbolic_extents_computes_what_the_reference_does(epilogue: str) -> None:
    graph = feed_forward((32, 24, 64), EPILOGUES[epilogue], "float32", is_symbolic=True)
    made = program(compiled(graph), threads=2)
    for m, n in ((1, 1), (31, 65), (128, 256)):
        check_program(made, graph, EPSILON["float32"], m=m, n=n)


@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_long_epilogue_of_a_convolution_computes_what_the_reference_does(epilogue: str, is_symbolic: bool) -> None:
    symbols = {"batch": 3} if is_symbolic else {}
    check(convolved(EPILOGUES[epilogue], is_symbolic=is_symbolic), "cpu:native", EPSILON["float32"], **symbols)


@pytest.mark.parametrize("epilogue", ["gelu", "mish", "gelu, and whether it is positive"])
def test_a_long_epilogue_computes_what_the_reference_does_on_a_gpu(epilogue: str) -> None:
    graph = feed_forward((9, 12, 20), EPILOGUES[epilogue], "float32")
    arrays = arguments(graph)
    agree(emulated(graph, *arrays), evaluate(graph, *arrays), EPSILON["float32"])


def test_an_epilogue_of_any_length_takes_the_scratch_of_a_bare_product() -> None:
    def scratch(epilogue: Epilogue) -> list[tuple[str, object]]:
        # Rows of whole register tiles of 6 and of 14: the tile is the same whatever follows.
        made = compiled(feed_forward((84, 64, 256), epilogue, "float32")).program
        assert len(made.kernels) == 1
        return [(str(buffer.dtype), buffer.size_bytes) for buffer in made.buffers if buffer.role == "scratch"]

    assert scratch(EPILOGUES["silu times gelu"]) == scratch(lambda y: (relu(y),))

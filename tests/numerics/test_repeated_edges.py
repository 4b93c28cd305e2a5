"""Products of factors that a cat joins: images whose edges are repeated, and caches with new rows."""

from __future__ import annotations

import pytest

from tensorkiln.build import Builder, Tensor, cat, conv2d, flip, relu
from tensorkiln.graph import Graph
from tests import checked, emulated
from tests.compiled import compiled, runs_here
from tests.numerics.against_reference import compare, normal_arrays


def reflected(x: Tensor, width: int) -> Tensor:
    """The image with its edges reflected along both axes, as an importer writes it."""
    for axis in (2, 3):
        rows = [slice(None)] * axis
        before = x[(*rows, slice(1, 1 + width))]
        after = x[(*rows, slice(x.shape[axis] - 1 - width, x.shape[axis] - 1))]
        x = cat([flip(before, axis), x, flip(after, axis)], axis)
    return x


def image(b: Builder) -> Tensor:
    return relu(conv2d(reflected(b.input("float32", (1, 3, 17, 22)), 2), b.parameter("float32", (16, 3, 5, 5))))


def two_layers(b: Builder) -> Tensor:
    x = relu(conv2d(reflected(b.input("float32", (1, 3, 18, 16)), 1), b.parameter("float32", (16, 3, 3, 3))))
    return conv2d(reflected(x, 1), b.parameter("float32", (32, 16, 3, 3)), stride=(2, 2))


def of_any_size(b: Builder) -> Tensor:
    x = b.input("float32", (1, 3, b.symbol("h", 5, 40), b.symbol("w", 5, 40)))
    return relu(conv2d(reflected(x, 1), b.parameter("float32", (24, 3, 3, 3))))


def padded_again(b: Builder) -> Tensor:
    x = reflected(b.input("float32", (1, 8, 9, 24)), 1)
    return conv2d(x, b.parameter("float32", (16, 8, 3, 3)), padding=(1, 1))


def rows_of_a_cache(b: Builder) -> Tensor:
    past, new = b.input("float32", (4, b.symbol("h", 1, 40), 16)), b.input("float32", (4, 8, 16))
    return b.input("float32", (4, 8, 16)) @ cat([past, new], 1).permute((0, 2, 1))


CASES = {each.__name__: each for each in (image, two_layers, of_any_size, padded_again, rows_of_a_cache)}
SIZES = [{"h": 5, "w": 6}, {"h": 23, "w": 37}]


def graph_of(name: str) -> Graph:
    b = Builder(name)
    b.output(CASES[name](b))
    return b.graph()


@pytest.mark.parametrize("isa", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize("name", CASES)
def test_a_product_of_what_a_cat_joins_is_a_contraction(name: str, isa: str) -> None:
    graph = graph_of(name)
    made = compiled(graph, isa, texts=["schedule"])
    wanted = 2 if name == "two_layers" else 1
    assert made.dumps["schedule"].count('kiln.strategy = "contraction"') == wanted
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    for size in SIZES:
        symbols = {key: value for key, value in size.items() if key in graph.symbols}
        arrays = normal_arrays(graph, 5, **symbols)
        compare(checked.run(made, *arrays, threads=2, **symbols), graph, arrays, **symbols)


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_computes_products_of_what_a_cat_joins(name: str) -> None:
    graph = graph_of(name)
    symbols = {key: value for key, value in {"h": 7, "w": 9}.items() if key in graph.symbols}
    arrays = normal_arrays(graph, 5, **symbols)
    compare(emulated.run(graph, *arrays, **symbols), graph, arrays, **symbols)


def test_a_cat_that_is_read_once_is_not_stored_for_a_product() -> None:
    b = Builder("one_row")
    past, new = b.input("float32", (4, 40, 16)), b.input("float32", (4, 1, 16))
    b.output(b.input("float32", (4, 1, 16)) @ cat([past, new], 1).permute((0, 2, 1)))
    assert len(compiled(b.graph()).program.kernels) == 1

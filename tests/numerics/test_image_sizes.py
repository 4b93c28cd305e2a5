"""Images of any size: convolutions and pooling of symbolic heights and widths."""

from __future__ import annotations

import pytest

from tensorkiln.build import Builder, Tensor, conv2d, max_pool2d, relu
from tensorkiln.graph import Graph
from tests import checked, emulated
from tests.compiled import compiled, runs_here
from tests.numerics.against_reference import compare, normal_arrays


def image(b: Builder, channels: int, batch: bool = False) -> Tensor:
    n = b.symbol("n", 1, 4) if batch else 1
    return b.input("float32", (n, channels, b.symbol("h", 5, 64), b.symbol("w", 6, 64)))


def padded(b: Builder) -> Tensor:
    return relu(conv2d(image(b, 3), b.parameter("float32", (24, 3, 5, 5)), padding=(2, 2)))


def in_strides(b: Builder) -> Tensor:
    return conv2d(image(b, 8, batch=True), b.parameter("float32", (16, 8, 3, 3)), stride=(2, 2), padding=(1, 1))


def in_steps(b: Builder) -> Tensor:
    return conv2d(image(b, 4), b.parameter("float32", (16, 4, 3, 3)), stride=(3, 1), dilation=(1, 2), padding=(1, 2))


def in_groups(b: Builder) -> Tensor:
    return conv2d(image(b, 32), b.parameter("float32", (32, 16, 3, 3)), padding=(1, 1), groups=2)


def after_pooling(b: Builder) -> Tensor:
    x = relu(conv2d(image(b, 3), b.parameter("float32", (16, 3, 3, 3)), stride=(2, 2), padding=(1, 1)))
    x = max_pool2d(x, (3, 3), stride=(2, 2), padding=(1, 1))
    x = relu(conv2d(x, b.parameter("float32", (32, 16, 3, 3)), padding=(1, 1)))
    return conv2d(x, b.parameter("float32", (8, 32, 1, 1)))


CASES = {each.__name__: each for each in (padded, in_strides, in_steps, in_groups, after_pooling)}
SIZES = [{"n": 1, "h": 5, "w": 6}, {"n": 2, "h": 23, "w": 64}, {"n": 3, "h": 32, "w": 17}]


def graph_of(name: str) -> Graph:
    b = Builder(name)
    b.output(CASES[name](b))
    return b.graph()


@pytest.mark.parametrize("isa", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize("name", CASES)
def test_a_convolution_of_images_of_any_size_is_a_contraction(name: str, isa: str) -> None:
    graph = graph_of(name)
    made = compiled(graph, isa, texts=["schedule"])
    wanted = sum(node.node == "reduce_axis" for node in graph.nodes) - (name == "after_pooling")
    assert made.dumps["schedule"].count('kiln.strategy = "contraction"') == wanted
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    for size in SIZES:
        symbols = {key: value for key, value in size.items() if key in graph.symbols}
        arrays = normal_arrays(graph, 4, **symbols)
        compare(checked.run(made, *arrays, threads=2, **symbols), graph, arrays, **symbols)


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_computes_convolutions_of_images_of_any_size(name: str) -> None:
    graph = graph_of(name)
    symbols = {key: value for key, value in {"n": 2, "h": 9, "w": 7}.items() if key in graph.symbols}
    arrays = normal_arrays(graph, 4, **symbols)
    compare(emulated.run(graph, *arrays, **symbols), graph, arrays, **symbols)

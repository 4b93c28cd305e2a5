"""Sums over windows as long as an image, such as the gradients of weights, multiply vectors of channels."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, conv2d, pad, relu
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, runs_here, shared
from tests.passes.blocked_networks import AVX2, AVX512
from tests.passes.modules import output

Write = Callable[[Builder], Tensor]


def gradient(b: Builder, batch: expr.Dim, channels: int, filters: int, *, size: int = 3, dilation: int = 1) -> Tensor:
    """The gradient of a convolution's weights, of images in the order of torch; steps are a window's dilation."""
    pixels = (9 - size) // dilation + 1
    x, g = b.input("float32", (batch, channels, 9, 9)), b.input("float32", (batch, filters, pixels, pixels))
    return conv2d(x.permute((1, 0, 2, 3)), g.permute((1, 0, 2, 3)), dilation=dilation)


def channels_last(b: Builder) -> Tensor:
    x, g = b.input("float32", (2, 8, 10, 24)), b.input("float32", (2, 8, 10, 32))
    x = pad(relu(x.permute((3, 0, 1, 2))), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return conv2d(x, g.permute((3, 0, 1, 2))) * 0.5 - b.input("float32", (24, 32, 3, 3))


def of_groups_of_channels(b: Builder) -> Tensor:
    """Factors that a normalisation of groups left with two dimensions of channels."""
    x, g = (b.input("float32", (2, 8, 8, 4, 8)).reshape((2, 8, 8, 32)).permute((3, 0, 1, 2)) for _ in range(2))
    return conv2d(pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), g)


CASES: dict[str, Write] = {
    "torch": lambda b: gradient(b, 3, 16, 32),
    "symbolic batch": lambda b: gradient(b, b.symbol("n", 1, 8), 16, 24),
    "strided": lambda b: gradient(b, 2, 16, 16, dilation=2),
    "few filters": lambda b: gradient(b, 2, 32, 3),
    "few channels": lambda b: gradient(b, 2, 3, 16, size=4),
    "odd channels": lambda b: gradient(b, 2, 7, 19),
    "one pixel": lambda b: gradient(b, 2, 16, 16, size=9),
    "channels last": channels_last,
    "groups of channels": of_groups_of_channels,
}


def graph_of(write: Write) -> Graph:
    b = Builder("gradient")
    return output(b, write(b))


@pytest.mark.parametrize("isa", [AVX2, AVX512])
@pytest.mark.parametrize("name", CASES)
def test_a_sum_over_long_windows_gives_what_the_reference_gives(name: str, isa: str) -> None:
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    graph = graph_of(CASES[name])
    made = shared(graph, isa, texts=["block-channels"])
    for size in (1, 5):
        symbols = dict.fromkeys(graph.symbols, size)
        rng = np.random.default_rng(size)
        shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        found = checked.run(made, *arrays, threads=2, **symbols)
        for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-3)


@pytest.mark.parametrize(
    ("name", "order"),
    {
        "torch": "3x3x16x32",
        "symbolic batch": "3x3x16x24",
        "strided": "3x3x16x16",
        "few filters": "3x3x3x32",
        "few channels": "4x4x3x16",
        "channels last": "3x3x24x32",
        "groups of channels": "3x3x32x32",
    }.items(),
)
def test_results_of_long_windows_end_with_channels(name: str, order: str) -> None:
    made = shared(graph_of(CASES[name]), AVX512, texts=["block-channels"])
    (shape,) = re.findall(r'"kiln.reduce_axis".*-> tensor<([\dx]+)xf32', made.dumps["block-channels"])
    assert shape.removeprefix("1x").replace("x1x", "x") == order


def test_short_windows_stay_in_the_order_of_the_graph() -> None:
    b = Builder("forward")
    x, w = b.input("float32", (2, 16, 9, 9)), b.input("float32", (32, 16, 3, 3))
    made = compiled(output(b, conv2d(x, w)), AVX2, texts=["block-channels"])
    assert "contiguous" not in made.dumps["block-channels"]


@pytest.mark.parametrize("isa", [AVX2, AVX512])
def test_a_sum_of_products_with_a_number_stays_as_it_is(isa: str) -> None:
    b = Builder("multiples")
    made = compiled(
        output(b, (b.input("float32", (b.symbol("n", 1, 9), 4)) * 0.5).sum(1)), isa, texts=["block-channels"]
    )
    assert "contiguous" not in made.dumps["block-channels"]

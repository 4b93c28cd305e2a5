"""Windows of which some places only ever read padding, as of convolutions with wide dilations."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from passes.decompose import decompose
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, conv, max_pool2d, relu
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import shared
from tests.passes.modules import output

Write = Callable[[Builder], Tensor]


def dilated(b: Builder, x: Tensor, filters: int, window: tuple[int, ...], by: int, *, groups: int = 1) -> Tensor:
    """A convolution that keeps the size of the image, with windows of an odd size."""
    channels = x.shape[1]
    assert isinstance(channels, int)
    padding = [size // 2 * by for size in window]
    weights = b.parameter(x.dtype, (filters, channels // groups, *window))
    return conv(x, weights, padding=padding, dilation=by, groups=groups)


def pyramid(b: Builder) -> Tensor:
    """Convolutions of one image in blocks of channels, as DeepLab has them."""
    x = relu(dilated(b, b.input("float32", (1, 16, 5, 6)), 32, (3, 3), 1))
    return relu(dilated(b, x, 16, (3, 3), 6)) + relu(dilated(b, x, 16, (3, 3), 4)) + dilated(b, x, 16, (3, 3), 40)


def one_side(b: Builder) -> Tensor:
    x = b.input("float32", (1, 3, 6, 8))
    return conv(x, b.parameter("float32", (4, 3, 4, 3)), padding=[(9, 1), (2, 3)], dilation=(3, 2))


CASES: dict[str, tuple[Write, str]] = {
    "the middle": (lambda b: dilated(b, b.input("float32", (1, 16, 5, 6)), 32, (3, 3), 6), "16x1x1"),
    "one axis": (lambda b: dilated(b, b.input("float32", (1, 16, 5, 6)), 32, (3, 3), 5), "16x1x3"),
    "some places": (lambda b: dilated(b, b.input("float32", (2, 3, 5, 6)), 8, (7, 9), 2), "3x5x5"),
    "one side": (one_side, "3x3x3"),
    "symbolic batch": (
        lambda b: dilated(b, b.input("float32", (b.symbol("n", 1, 4), 8, 4, 4)), 16, (3, 3), 4),
        "8x1x1",
    ),
    "symbolic height": (
        lambda b: dilated(b, b.input("float32", (1, 8, b.symbol("n", 1, 8), 4)), 16, (3, 3), 4),
        "8x3x1",
    ),
    "channels apart": (
        lambda b: dilated(b, b.input("float32", (1, 16, 4, 4)), 16, (3, 3), 4, groups=16),
        "16x1x4x4x1x1x1",
    ),
    "one dimension": (lambda b: dilated(b, b.input("float64", (2, 4, 6)), 8, (5,), 4), "4x3"),
    "steps of two": (
        lambda b: conv(b.input("float32", (1, 4, 8, 8)), b.input("float32", (8, 4, 3, 3)), None, 2, 8, 8),
        "4x1x1",
    ),
    "computed image": (
        lambda b: dilated(b, max_pool2d(b.input("float32", (1, 8, 8, 8)), 2), 8, (3, 3), 4),
        "8x1x1",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_places_that_only_read_padding_are_left_out(name: str) -> None:
    b = Builder()
    text = str(decompose(from_graph(output(b, CASES[name][0](b)), new_context())))
    products = re.findall(r'op = "mul"\}.* -> tensor<([\dxn?]+)xf', text)
    assert any(shape.endswith(f"x{CASES[name][1]}") for shape in products), products


@pytest.mark.parametrize("write", [*(write for write, _ in CASES.values()), pyramid], ids=[*CASES, "pyramid"])
def test_windows_without_padding_sum_to_what_the_reference_sums(write: Write) -> None:
    b = Builder()
    graph = output(b, write(b))
    made = shared(graph)
    for size in (1, 4):
        symbols = dict.fromkeys(graph.symbols, size)
        rng = np.random.default_rng(size)
        shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
        arrays = [rng.standard_normal(shape).astype(graph.types[graph.input_vars[0]].dtype.value) for shape in shapes]
        (found,) = checked.run(made, *arrays, **symbols)
        np.testing.assert_allclose(found, evaluate(graph, *arrays, **symbols)[0], 1e-4, 1e-4)


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (2, 1)])
def test_an_infinite_weight_times_padding_is_no_number(place: tuple[int, int]) -> None:
    b = Builder()
    graph = output(b, dilated(b, b.input("float32", (1, 16, 5, 6)), 32, (3, 3), 6))
    x = np.ones((1, 16, 5, 6), np.float32)
    w = np.ones((32, 16, 3, 3), np.float32)
    w[3, 5, *place] = np.inf
    (found,) = checked.run(shared(graph), x, w)
    np.testing.assert_array_equal(found, evaluate(graph, x, w)[0])


def test_windows_that_read_the_image_stay_whole() -> None:
    b = Builder()
    text = str(
        decompose(from_graph(output(b, dilated(b, b.input("float32", (1, 4, 9, 9)), 8, (3, 3), 4)), new_context()))
    )
    assert "kiln.shrink" not in text

"""3x3 convolutions by minimal filtering, which `fast_math` allows: every size of image, filter and batch."""

from __future__ import annotations

from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from passes.compile import Compilation, CompileRequest
from passes.cpu import contraction, winograd
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, conv2d, relu
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import program, runs_here, target, with_texts
from tests.passes.modules import output

AVX2, AVX512 = "cpu:x86-64-v3", "cpu:x86-64-v4"
SIZES = pytest.mark.parametrize("size", winograd.SIZES)

Array = npt.NDArray[np.float32]


def layer(x: Tensor, filters: int, *, padding: int = 1, groups: int = 1, size: int = 3) -> Tensor:
    b, channels = x.builder, x.shape[1]
    assert isinstance(channels, int)
    weights, bias = (
        b.parameter("float32", (filters, channels // groups, size, size)),
        b.parameter("float32", (filters,)),
    )
    return relu(conv2d(x, weights, bias, padding=padding, groups=groups))


def network(
    height: int, width: int, channels: int = 32, filters: int = 32, *, padding: int = 1, batch: int | None = 1
) -> Graph:
    """A convolution of an image in blocks, which another one made; of `n` images without a batch."""
    b = Builder("network")
    x = b.input("float32", (batch or b.symbol("n", 1, 8), 3, height, width))
    return output(b, layer(layer(x, channels, padding=0, size=1), filters, padding=padding))


def fast(graph: Graph, size: int, name: str = AVX2, *texts: str) -> Compilation:
    """The graph compiled under `fast_math`, with squares of `size` results; AssertionError if it has none."""
    with (
        mock.patch.object(winograd, "SIZES", (size,)),
        mock.patch.object(contraction, "product_cycles", return_value=1e15),
    ):
        made = with_texts(CompileRequest(graph, target(name), CompileOptions(fast_math=True)), "schedule", *texts)
    assert f'kiln.strategy = "{winograd.NAME}"' in made.dumps["schedule"]
    return made


def drawn(graph: Graph, **symbols: int) -> list[Array]:
    """Small integers, of which sums are exact in any order."""
    rng = np.random.default_rng(7)
    shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
    return [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


def found(made: Compilation, graph: Graph, **symbols: int) -> None:
    """What a compiled graph gives, its memory watched, against the reference."""
    arrays = drawn(graph, **symbols)
    (result,) = checked.run(made, *arrays, threads=2, **symbols)
    (expected,) = evaluate(graph, *arrays, **symbols)
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@SIZES
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize(("height", "width"), [(5, 5), (7, 7), (8, 13), (14, 14), (15, 4), (6, 30)])
def test_images_of_any_size_and_padding_are_filtered(height: int, width: int, padding: int, size: int) -> None:
    graph = network(height, width, padding=padding)
    found(fast(graph, size), graph)


@SIZES
@pytest.mark.parametrize(("target_name", "block"), [(AVX2, 8), (AVX512, 16)])
@pytest.mark.parametrize(("channels", "filters"), [(2, 6), (10, 2), (4, 14), (18, 4)])
def test_any_blocks_of_channels_and_filters_are_summed(
    channels: int, filters: int, target_name: str, block: int, size: int
) -> None:
    if not runs_here(target_name):
        pytest.skip(f"{target_name} does not run here")
    graph = network(9, 9, channels * block, filters * block)
    found(fast(graph, size, target_name), graph)


@SIZES
def test_filters_may_end_within_a_panel(size: int) -> None:
    graph = network(9, 9, 24, 40)
    found(fast(graph, size), graph)


@SIZES
@pytest.mark.parametrize("batch", [2, 5, None])
def test_a_batch_may_have_any_size(batch: int | None, size: int) -> None:
    graph = network(10, 9, batch=batch)
    made = fast(graph, size)
    for count in [batch] if batch else [1, 3, 8]:
        found(made, graph, **({} if batch else {"n": count}))


@SIZES
@pytest.mark.parametrize("batch", [1, None])
def test_an_image_that_is_not_in_blocks_is_filtered(batch: int | None, size: int) -> None:
    b = Builder("alone")
    x = b.input("float32", (batch or b.symbol("n", 1, 8), 32, 13, 11))
    graph = output(b, layer(x, 48))
    found(fast(graph, size), graph, **({} if batch else {"n": 3}))


@SIZES
def test_residuals_and_joined_channels_are_stored_with_the_results(size: int) -> None:
    b = Builder("block")
    x = layer(b.input("float32", (2, 3, 12, 12)), 32, padding=0, size=1)
    first = layer(x, 32)
    graph = output(b, relu(conv2d(first, b.parameter("float32", (32, 32, 3, 3)), padding=1) + x) * 0.5)
    found(fast(graph, size), graph)


@SIZES
def test_groups_are_filtered_apart(size: int) -> None:
    b = Builder("groups")
    x = layer(b.input("float32", (1, 3, 12, 12)), 64, padding=0, size=1)
    graph = output(b, layer(layer(x, 64), 64, groups=2))
    found(fast(graph, size), graph)


@pytest.mark.parametrize(("size", "most"), [(2, 2e-6), (4, 2e-5)])
def test_errors_are_a_few_roundings_of_the_largest_result(size: int, most: float) -> None:
    graph = network(14, 14, 64, 32)
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(array.shape, np.float32) for array in drawn(graph)]
    (result,) = program(fast(graph, size, "cpu:native" if runs_here(AVX2) else AVX2))(*arrays)
    (expected,) = evaluate(graph, *arrays)
    assert np.abs(result - expected).max() <= most * np.abs(expected).max()


def test_a_direct_sum_is_not_disturbed_by_elements_beside_it() -> None:
    """What no option but `fast_math` allows: elements with weight zero, but larger by far, and infinite ones."""
    graph = network(8, 8)
    image, *others = drawn(graph)
    others[2][:, :, :, 1] = 0
    image[..., 2] = 1e10
    (expected,) = evaluate(graph, image, *others)
    made = with_texts(CompileRequest(graph, target(AVX2)), "schedule")
    assert winograd.NAME not in made.dumps["schedule"]
    (result,) = checked.run(made, image, *others)
    np.testing.assert_allclose(result[..., 2], expected[..., 2], rtol=1e-5)
    (filtered,) = checked.run(fast(graph, 2), image, *others)
    assert not np.allclose(filtered[..., 2], expected[..., 2], rtol=1e-2)


def test_an_infinite_element_gives_infinite_sums() -> None:
    """What no option but `fast_math` allows: NaN instead."""
    graph = network(8, 8)
    arrays = [np.abs(array) + 1 for array in drawn(graph)]
    arrays[0][0, 0, 3, 3] = np.inf
    expected = evaluate(graph, *arrays)
    np.testing.assert_allclose(
        checked.run(with_texts(CompileRequest(graph, target(AVX2))), *arrays), expected, rtol=1e-5
    )
    (filtered,) = checked.run(fast(graph, 2), *arrays)
    assert np.isinf(expected[0][..., 2:5, 2:5]).all()
    assert np.isnan(filtered[..., 2:5, 2:5]).any()

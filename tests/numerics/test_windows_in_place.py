"""Convolutions whose tiles read windows where these lie, and end anywhere in a row of the image."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln import expr
from tensorkiln.build import Builder, conv2d, relu
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import proven, runs_here
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.modules import after, output

AVX2, AVX512 = "cpu:x86-64-v3", "cpu:x86-64-v4"


def network(
    width: int,
    size: int = 3,
    *,
    height: int = 9,
    stride: int = 1,
    dilation: int = 1,
    batch: int | None = 1,
    filters: int = 64,
) -> Graph:
    """A convolution of an image that another one made, whose channels lie in blocks; of `n` images without a batch."""
    b = Builder("network")
    n = batch or b.symbol("n", 1, 8)
    x = b.input("float32", (n, 3, height, width))
    made = conv2d(x, b.parameter("float32", (32, 3, 1, 1)))
    weights, bias = b.parameter("float32", (filters, 32, size, size)), b.parameter("float32", (filters,))
    return output(b, relu(conv2d(made, weights, bias, stride=stride, dilation=dilation)))


def found(made: Compilation, graph: Graph, **symbols: int) -> None:
    """What a compiled graph gives, its memory watched, against the reference."""
    rng = np.random.default_rng(7)
    shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    (result,) = checked.run(made, *arrays, threads=2, **symbols)
    np.testing.assert_array_equal(result, evaluate(graph, *arrays, **symbols)[0])


@cache
def tiles(width: int, size: int, target: str, *, stride: int = 1, filters: int = 64) -> set[str]:
    """The functions that multiply: the tile's rows, columns and lanes, a step on the left and a row there."""
    module = str(after("realise", network(width, size, stride=stride, filters=filters), target))
    return {"x".join(found) for found in re.findall(r"@multiply_float32_(\d+)x(\d+)_\d+_1_([^_]+)_", module)}


@pytest.mark.parametrize("width", [7, 9, 15, 16, 30])
def test_tiles_that_end_within_the_image_have_an_offset_for_each_of_six_rows(width: int) -> None:
    assert tiles(width, 3, AVX2) == {"6x16xeach"}


def test_rows_of_whole_tiles_are_equally_far_apart() -> None:
    assert tiles(14, 3, AVX2) == {"6x16x8"}
    assert tiles(16, 3, AVX512) == {"14x32x16"}


def test_windows_that_share_nothing_have_offsets_of_rows_in_short_runs_only() -> None:
    assert tiles(9, 1, AVX2) == {"6x16xeach"}
    assert not [tile for tile in tiles(9, 1, AVX512) if "each" in tile]


def test_windows_that_leave_out_half_of_each_cache_line_are_packed_for_many_columns() -> None:
    assert tiles(29, 3, AVX2, stride=2) == {"6x16xeach"}
    assert tiles(29, 3, AVX2, stride=2, filters=512) == {"6x16x256"}


def in_function(width: int, stride: int) -> tuple[int, list[str]]:
    """The loads in the function that multiplies in place, and the sorts and localities of its prefetches."""
    module = str(after("realise", network(width, stride=stride), AVX2))
    (body,) = re.findall(r"func.func private @multiply_float32_6x16_8_1_(?:8|each)_8_\w+(.*?)\n  }", module, re.DOTALL)
    return body.count("memref.load"), re.findall(r"memref.prefetch [^,]*, (\w+, locality<\d>)", body)


@pytest.mark.parametrize(
    ("width", "stride", "tables", "lines"),
    [(14, 1, 2, 3), (15, 1, 7, 3), (15, 2, 7, 0)],
    ids=["whole", "each", "apart"],
)
def test_a_run_of_eight_is_written_out_and_the_next_tiles_prefetched_if_rows_lie_side_by_side(
    width: int, stride: int, tables: int, lines: int
) -> None:
    loads, asked = in_function(width, stride)
    assert loads == 8 * 6 + tables
    assert asked == ["write, locality<3>"] * 2 * 6 + ["read, locality<3>"] * lines


@pytest.mark.parametrize(
    ("width", "stride", "target"),
    [
        (width, stride, target)
        for place, width in enumerate((7, 9, 14, 15, 30))
        for stride in (1, 2)
        # By turns, so that each target meets each width, and each stride.
        for target in ((AVX2, AVX512) if EXAMPLES > 1 else [(AVX2, AVX512)[(place + stride) % 2]])
    ],
)
def test_windows_of_any_width_are_multiplied(width: int, stride: int, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    graph = network(width, stride=stride)
    found(proven(graph, target), graph)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_windows_of_any_size_are_multiplied(size: int) -> None:
    graph = network(15, size)
    found(proven(graph, AVX2), graph)


def test_windows_with_holes_are_multiplied() -> None:
    graph = network(13, dilation=2)
    found(proven(graph, AVX2), graph)


@pytest.mark.parametrize(("width", "stride"), [(9, 1), (13, 2), (14, 1)])
def test_pixels_are_multiplied(width: int, stride: int) -> None:
    graph = network(width, 1, stride=stride)
    found(proven(graph, AVX2), graph)


def test_windows_with_gaps_are_multiplied_for_many_columns() -> None:
    graph = network(15, stride=2, filters=512)
    found(proven(graph, AVX2), graph)


@pytest.mark.parametrize("batch", [3, None])
def test_tiles_go_on_in_the_next_image(batch: int | None) -> None:
    graph = network(7, height=5, batch=batch)
    made = proven(graph, AVX2)
    for images in [batch] if batch else [1, 2, 7]:
        found(made, graph, **{} if batch else {"n": images})

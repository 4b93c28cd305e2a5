"""Which convolutions `fast_math` computes by minimal filtering, and what becomes of them."""

from __future__ import annotations

import re
from unittest import mock

import pytest

from passes.compile import CompileRequest
from passes.cpu import winograd
from tensorkiln.build import Builder, conv2d, relu
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tests.compiled import proven, target, with_texts
from tests.filecheck import check_ir
from tests.passes.modules import output

AVX2, AVX512 = "cpu:x86-64-v3", "cpu:x86-64-v4"
FAST = CompileOptions(fast_math=True)


def convolution(channels: int = 64, extent: int = 28, *, size: int = 3, stride: int = 1, dilation: int = 1) -> Graph:
    """A convolution of an image in blocks."""
    b = Builder("convolution")
    x = conv2d(b.input("float32", (1, 3, extent, extent)), b.parameter("float32", (channels, 3, 1, 1)))
    weights = b.parameter("float32", (channels, channels, size, size))
    padding = size // 2 * dilation
    return output(b, relu(conv2d(x, weights, stride=stride, padding=padding, dilation=dilation)))


def strategies(graph: Graph, name: str = AVX2, options: CompileOptions = FAST) -> list[str]:
    text = with_texts(CompileRequest(graph, target(name), options), "schedule").dumps["schedule"]
    return re.findall(r'kiln.strategy = "(\w+)"', text)


def sizes(graph: Graph, name: str = AVX2) -> list[int]:
    """The size of the results of a square, of each convolution by filtering."""
    made = with_texts(CompileRequest(graph, target(name), FAST), "realise")
    return [int(size) for size in re.findall(r"func.func private @filter_image_(\d)_", made.dumps["realise"])]


@pytest.mark.parametrize("name", [AVX2, AVX512])
@pytest.mark.parametrize(("channels", "extent"), [(64, 56), (128, 28), (256, 56), (512, 28), (64, 224)])
def test_large_images_are_filtered_for_four_by_four_results(channels: int, extent: int, name: str) -> None:
    assert sizes(convolution(channels, extent), name) == [4]


@pytest.mark.parametrize(("channels", "extent"), [(512, 7), (64, 6)])
def test_squares_of_two_results_are_computed_where_larger_ones_end_beyond_the_image(channels: int, extent: int) -> None:
    assert sizes(convolution(channels, extent)) == [2]


def test_without_the_option_products_are_summed_directly() -> None:
    assert winograd.NAME not in strategies(convolution(), options=CompileOptions())


@pytest.mark.parametrize(
    "given", [{"stride": 2}, {"dilation": 2}, {"size": 5}, {"size": 1}], ids=["stride", "dilation", "5x5", "1x1"]
)
def test_other_convolutions_are_summed_directly(given: dict[str, int]) -> None:
    assert winograd.NAME not in strategies(convolution(**given))


@pytest.mark.parametrize(("extent", "is_filtered"), [(14, False), (28, True)])
def test_weights_that_are_no_parameters_are_filtered_if_they_are_stored_in_blocks(
    extent: int, is_filtered: bool
) -> None:
    b = Builder("inputs")
    x, weights = b.input("float32", (1, 64, extent, extent)), b.input("float32", (64, 64, 3, 3))
    assert (winograd.NAME in strategies(output(b, conv2d(x, weights, padding=1)))) == is_filtered


def test_targets_without_blocks_of_channels_have_no_filtering() -> None:
    for name in ("cpu:x86-64-v2", "cpu:aarch64"):
        assert winograd.NAME not in strategies(convolution(), name)


def test_results_do_not_depend_on_the_option() -> None:
    texts = [
        with_texts(CompileRequest(convolution(), target(AVX2), options), "to-linalg").dumps["to-linalg"]
        for options in (FAST, CompileOptions())
    ]
    assert texts[0] == texts[1]


def test_a_work_group_transforms_its_squares_once_and_the_filters_for_each_panel() -> None:
    made = with_texts(CompileRequest(convolution(), target(AVX2), FAST), "realise")
    check_ir(
        made.dumps["realise"],
        """
        // CHECK: func.func @kernel_2_packed_1_body
        // CHECK: scf.for
        // CHECK: call @filter_image_4_8(
        // CHECK: scf.for
        // CHECK: scf.for
        // CHECK: call @filter_weights_4_8_2_8(
        // CHECK: scf.for
        // CHECK: call @multiply_float32_{{[0-9]}}x16_8_1_64_0_16(
        // CHECK: call @filter_result_4_8_2(
        // CHECK: scf.for
        // CHECK: arith.cmpf ugt
        """,
    )


@pytest.mark.parametrize(("channels", "extent"), [(64, 56), (64, 28), (512, 7)])
def test_a_layer_has_work_for_four_threads(channels: int, extent: int) -> None:
    made = with_texts(CompileRequest(convolution(channels, extent), target(AVX2), FAST), "schedule")
    assert winograd.NAME in made.dumps["schedule"]
    filtered = max(made.program.kernels, key=lambda kernel: len(kernel.buffers))
    assert filtered.global_size[0] in range(4, 200)


@pytest.mark.parametrize("name", [AVX2, AVX512])
@pytest.mark.parametrize("size", winograd.SIZES)
@pytest.mark.parametrize("extent", [7, 14])
def test_stores_are_proven_to_stay_in_their_memory(extent: int, size: int, name: str) -> None:
    with mock.patch.object(winograd, "SIZES", (size,)):
        proven(convolution(32, extent), name, options=FAST)

"""Images between convolutions lie in blocks of channels."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from dialect.verify import verify
from passes.compile import Compilation, CompileRequest, compile_request
from passes.layout import block_channels
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, avg_pool2d, cat, conv2d, max_pool2d, pad, relu, sigmoid
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, runs_here, shared, target
from tests.filecheck import check_ir
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.blocked_networks import (
    AVX2,
    AVX512,
    CASES,
    PLAIN,
    Write,
    alone_with_a_pool,
    alone_with_long_sums,
    convolved,
    depthwise,
    depthwise_of_arguments,
    image,
    plain,
    unbiased,
)
from tests.passes.modules import after, decomposed, output

TEXTS = ("block-channels", "pack-parameters", "schedule")
"""Stages whose texts are read of networks that are called, too."""


def graph_of(write: Write) -> Graph:
    b = Builder("network")
    return output(b, write(b))


def check(graph: Graph, made: Compilation, **symbols: int) -> None:
    """What a graph was compiled to against the reference, with its parameters bound and not, its memory watched."""
    arrays, expected = called(graph.to_json(), **symbols)
    found = checked.run(made, *arrays, threads=2, **symbols)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-4)


@lru_cache(maxsize=4)
def called(text: str, **symbols: int) -> tuple[list[np.ndarray], Sequence[np.ndarray]]:
    """Arrays for a graph, and what the reference gives: once for all targets."""
    graph = Graph.model_validate_json(text)
    rng = np.random.default_rng(1)
    arrays: list[np.ndarray] = []
    for var in graph.input_vars:
        shape = [expr.evaluate(dim, symbols) for dim in graph.types[var].shape]
        depth = max(1.0, float(np.prod(shape[1:]))) if var in graph.parameter_vars else 1.0
        arrays.append((rng.standard_normal(shape) / np.sqrt(depth)).astype(np.float32))
    return arrays, evaluate(graph, *arrays, **symbols)


@pytest.mark.parametrize("isa", [AVX2, AVX512])
@pytest.mark.parametrize("name", CASES)
def test_a_network_in_blocks_gives_what_the_reference_gives(name: str, isa: str) -> None:
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    graph = graph_of(CASES[name])
    made = shared(graph, isa, texts=TEXTS)
    assert is_blocked(made, isa) or (name, isa) in PLAIN
    for size in (1, 4):
        symbols = {symbol: min(max(size * 3, low), high) for symbol, (low, high) in graph.symbols.items()}
        check(graph, made, **symbols)
        if not symbols:
            break


@pytest.mark.skipif(not runs_here(AVX512), reason="this processor lacks instructions of AVX-512")
def test_a_permutation_continues_a_region_without_parameters() -> None:
    made = shared(graph_of(CASES["channels_last"]), AVX512, texts=TEXTS)
    stored = re.findall(r'"kiln.contiguous".*-> tensor<([^,>]*)', made.dumps["block-channels"])
    assert any(shape.endswith("x2x26x28x16xf32") for shape in stored), stored


def is_blocked(made: Compilation, isa: str) -> bool:
    """Whether a temporary of the program has a vector of channels as its last dimension, behind an image."""
    lanes = 8 if isa == AVX2 else 16
    buffers = made.program.buffers
    return any(entry.role == "temp" and len(entry.shape) > 4 and entry.shape[-1] == lanes for entry in buffers)


@pytest.mark.parametrize("seed", range(24 if EXAMPLES > 1 else 12))
def test_any_network_of_convolutions_gives_what_the_reference_gives(seed: int) -> None:
    graph = graph_of(lambda b: composed(b, random.Random(seed)))
    check(graph, compiled(graph, AVX2 if seed % 3 == 0 else "cpu:native"))


def composed(b: Builder, choice: random.Random) -> Tensor:
    """Layers one behind the other, and what earlier ones left joined, added, multiplied or returned on the way."""
    channels = (8, 16, 16, 32, 48, 24, 20)
    x = image(b, choice.choice((3, 16)), choice.choice((7, 9, 12)), choice.choice((7, 13, 16)))
    left = [x]
    for _ in range(choice.randint(3, 7)):
        kind = choice.choice(
            ("conv", "conv", "conv", "pointwise", "depthwise", "pool", "join", "add", "scale", "return")
        )
        like = [other for other in left if other.shape[2:] == x.shape[2:]]
        if kind in ("conv", "pointwise"):
            size = 1 if kind == "pointwise" else choice.choice((2, 3, 3, 5))
            x = convolved(b, x, choice.choice(channels), size, stride=choice.choice((1, 1, 2)))
        elif kind == "depthwise":
            size, stride = choice.choice((3, 3, 5, 7)), choice.choice((1, 1, 2))
            x = convolved(b, x, int(str(x.shape[1])), size, stride=stride, groups=int(str(x.shape[1])))
        elif kind == "pool" and min(int(str(dim)) for dim in x.shape[2:]) > 3:
            x = choice.choice((max_pool2d, avg_pool2d))(x, 3, stride=choice.choice((1, 2)), padding=(1, 1))
        elif kind == "join":
            x = cat([x, choice.choice(like)], axis=1)
        elif kind == "add":
            x = x + choice.choice([other for other in like if other.shape == x.shape] or [x])
        elif kind == "scale":
            x = x * sigmoid(x.mean((2, 3), keepdims=True)).expand(x.shape)
        elif kind == "return":
            b.output(x * 2.0)
        x = choice.choice((relu, relu, sigmoid, lambda y: y))(x)
        left.append(x)
    return x


@pytest.mark.parametrize("name", CASES)
def test_ops_over_blocks_keep_the_rules_of_their_kind(name: str) -> None:
    verify(block_channels(decomposed(graph_of(CASES[name])), block=8), "block-channels")


def test_tiles_of_a_convolution_without_maps_are_stored_in_blocks() -> None:
    check_ir(
        str(after("realise", graph_of(unbiased), AVX2)),
        "// CHECK: call @multiply_float32_6x16_8_1_each_8_8_8_exact_left(",
    )


def test_maps_behind_a_convolution_in_blocks_are_vectors() -> None:
    def network(b: Builder) -> Tensor:
        return convolved(b, relu(convolved(b, image(b, 16, 28, 28), 64) * 2), 64)

    kernel = str(after("realise", graph_of(network), AVX512)).split("func.func @kernel_1_packed_1_body")[1]
    check_ir(
        kernel,
        """
        // CHECK: call @multiply_
        // CHECK: arith.mulf {{.*}} vector<16xf32>
        // CHECK-NOT: linalg.generic
        """,
    )


def test_a_map_whose_last_loop_is_one_vector_has_no_masks_and_branches_at_padding() -> None:
    def padded(b: Builder) -> Tensor:
        scaled = b.input("float32", (5, b.symbol("n", 1, 40), 16)) * b.input("float32", (5, 1, 16))
        return pad(scaled, [(0, 0), (1, 2), (0, 0)])

    check_ir(
        after("realise", graph_of(padded), AVX512),
        """
        // CHECK-LABEL: func.func @kernel_0_body
        // CHECK: scf.if {{.*}} -> (vector<16xf32>)
        // CHECK: vector.load {{.*}} vector<16xf32>
        // CHECK: vector.store {{.*}} vector<16xf32>
        // CHECK-NOT: mask
        // CHECK-NOT: linalg.generic
        """,
    )


def test_tall_tiles_are_picked_where_pixels_lie_in_place() -> None:
    """Tiles of fewer rows and four vectors would read four panels of filters for each step."""

    def network(b: Builder) -> Tensor:
        return convolved(b, relu(convolved(b, image(b, 3, 28, 28), 64)), 64)

    check_ir(str(after("realise", graph_of(network), AVX512)), "// CHECK: call @multiply_float32_14x32_16_1_16_16_16_")


def test_results_and_images_of_convolutions_are_moved_into_blocks() -> None:
    module = block_channels(decomposed(graph_of(plain)), block=16)
    assert module.operation.verify()
    check_ir(
        str(module),
        """
        // CHECK: kiln.reduce_axis{{.*}}(tensor<1x1x2x9x14x16x3x3x3xf32>) -> tensor<1x1x2x9x14x16xf32>
        // CHECK: %[[X:.*]] = "kiln.binop"{{.*}}op = "max"{{.*}} -> tensor<1x2x9x14x16xf32>
        // CHECK: kiln.pad"(%[[X]]) {{.*}}[0, 0], [0, 0], [1, 1], [1, 1], [0, 0]{{.*}} -> tensor<1x2x11x16x16xf32>
        // CHECK: kiln.reduce_axis{{.*}}(tensor<1x1x2x9x14x16x3x3x2x16xf32>) -> tensor<1x1x2x9x14x16xf32>
        // CHECK: %[[B:.*]] = "kiln.permute"{{.*}} -> tensor<1x2x16x9x14xf32>
        // CHECK: %[[Y:.*]] = "kiln.contiguous"(%[[B]])
        // CHECK: %[[Z:.*]] = "kiln.reshape"(%[[Y]]) {{.*}} -> tensor<1x32x9x14xf32>
        // CHECK: return %[[Z]]
        """,
    )


def test_weights_of_a_depthwise_convolution_are_stored_in_blocks_if_they_are_fixed_or_the_pixels_many() -> None:
    for write, stored in ((depthwise, 1), (depthwise_of_arguments, 1)):
        text = str(block_channels(decomposed(graph_of(write)), block=16))
        assert len(re.findall(r"kiln\.contiguous.*x3x3x16xf32>$", text, re.MULTILINE)) == stored


def test_the_padding_around_lines_of_a_depthwise_convolution_is_not_stored() -> None:
    for write, padded in ((depthwise, False), (plain, True)):
        temps = [buffer.shape for buffer in shared(graph_of(write), AVX2, texts=TEXTS).program.buffers]
        assert ((1, 4, 9, 14, 8) in temps, (1, 4, 11, 16, 8) in temps) == (not padded, padded), temps


def test_a_convolution_alone_is_in_blocks_where_windows_overlap_and_sums_are_long() -> None:
    check_ir(
        block_channels(decomposed(graph_of(alone_with_long_sums)), block=16),
        """
        // CHECK: "kiln.reduce_axis"{{.*}} -> tensor<1x1x2x9x14x16xf32>
        // CHECK: %[[B:.*]] = "kiln.permute"{{.*}} -> tensor<1x2x16x9x14xf32>
        // CHECK: "kiln.contiguous"(%[[B]])
        """,
    )


def test_a_pool_of_windows_that_overlap_keeps_a_convolution_in_blocks() -> None:
    check_ir(
        block_channels(decomposed(graph_of(alone_with_a_pool)), block=16),
        """
        // CHECK: "kiln.reduce_axis"{{.*}}"sum"{{.*}} -> tensor<1x1x2x9x14x16xf32>
        // CHECK: "kiln.reduce_axis"{{.*}}"max"{{.*}} -> tensor<1x2x5x7x16xf32>
        """,
    )


def alone_with_a_pool_of_tiles(b: Builder) -> Tensor:
    return max_pool2d(relu(convolved(b, image(b), 32)), 2)


def alone(b: Builder) -> Tensor:
    """Of few products for each pixel."""
    return relu(convolved(b, image(b), 32))


def alone_without_windows(b: Builder) -> Tensor:
    return relu(convolved(b, image(b, 512), 32, 1))


def patches(b: Builder) -> Tensor:
    """Of windows that do not overlap."""
    return conv2d(image(b, 4, 16, 32), b.parameter("float32", (32, 4, 8, 8)), stride=8)


def of_odd_channels(b: Builder) -> Tensor:
    return convolved(b, relu(convolved(b, image(b), 20)), 20)


def of_arguments(b: Builder) -> Tensor:
    """Weights that may change would have to be stored in blocks at each call, for few pixels."""
    x = conv2d(image(b), b.input("float32", (32, 3, 3, 3)))
    return conv2d(x, b.input("float32", (32, 32, 3, 3)))


def double(b: Builder) -> Tensor:
    x = conv2d(b.input("float64", (1, 3, 9, 9)), b.parameter("float64", (32, 3, 3, 3)))
    return conv2d(x, b.parameter("float64", (32, 32, 3, 3)))


def products(b: Builder) -> Tensor:
    x = b.input("float32", (4, 32, 64)) @ b.parameter("float32", (64, 64))
    return relu(x) @ b.parameter("float32", (64, 64))


@pytest.mark.parametrize(
    "write",
    [
        alone,
        alone_with_a_pool_of_tiles,
        alone_without_windows,
        patches,
        of_odd_channels,
        of_arguments,
        double,
        products,
    ],
)
def test_networks_without_gain_keep_their_layout(write: Write) -> None:
    module = decomposed(graph_of(write))
    before = str(module)
    assert str(block_channels(module, block=16)) == before


def test_weights_are_packed_by_blocks_of_filters_and_channels() -> None:
    made = shared(graph_of(plain), AVX512, texts=TEXTS)
    check_ir(
        made.dumps["pack-parameters"],
        """
        // CHECK: linalg.pack {{.*}} outer_dims_perm = [0, 2, 3, 1] inner_dims_pos = [0] inner_tiles = [16]
        // CHECK-SAME: tensor<32x32x3x3xf32> -> tensor<2x3x3x32x16xf32>
        // CHECK: func.func private @kernel_3_packed_1(tensor<1x2x11x16x16xf32>, tensor<2x3x3x32x16xf32>)
        """,
    )
    assert made.dumps["schedule"].count('kiln.strategy = "contraction"') == 2


@pytest.mark.parametrize("alone", [{"fusion": False}, {"schedule": "none"}])
def test_a_second_opinion_has_no_blocks(alone: dict[str, Any]) -> None:
    options = CompileOptions(dump_stages=True, **alone)
    request = CompileRequest(graph_of(plain), target(AVX512), options)
    assert "block-channels" not in compile_request(request).dumps

"""Parameters that contractions read are packed once, into panels of the contraction's tiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln.build import Builder, Tensor, conv2d, relu
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, runs_here, target
from tests.filecheck import check_ir
from tests.passes.modules import output
from tests.passes.test_prepare import arrays_for

Write = Callable[[Builder], Tensor]
AVX512 = "cpu:x86-64-v4"


def graph_of(write: Write) -> Graph:
    b = Builder("packed")
    return output(b, write(b))


def product(b: Builder) -> Tensor:
    """The columns of the right operand are no multiple of a tile."""
    x, weights = b.input("float32", (b.symbol("n", 1, 64), 40)), b.parameter("float32", (40, 75))
    return relu(x @ weights + b.parameter("float32", (75,)))


def transposed(b: Builder) -> Tensor:
    x, weights = b.input("float32", (33, 300)), b.parameter("float32", (70, 300))
    return x @ weights.transpose()


def batched(b: Builder) -> Tensor:
    x, weights = b.input("float32", (5, 17, 24)), b.parameter("float32", (5, 24, 66))
    return x @ weights


def convolution(b: Builder) -> Tensor:
    """The weights are the left operand: output channels are rows."""
    x, weights = b.input("float32", (b.symbol("n", 1, 40), 6, 5, 14)), b.parameter("float32", (37, 6, 3, 3))
    return relu(conv2d(x, weights, padding=(1, 1)))


def prepared(b: Builder) -> Tensor:
    """What is packed was computed from parameters before."""
    x, weights = b.input("float32", (16, 48)), b.parameter("float32", (48, 64))
    return x @ (weights * b.parameter("float32", (64,)))


def double(b: Builder) -> Tensor:
    return b.input("float64", (9, 30)) @ b.parameter("float64", (30, 50))


def integer(b: Builder) -> Tensor:
    return b.input("int32", (9, 30)) @ b.parameter("int32", (30, 50))


CASES: dict[str, Write] = {
    each.__name__: each for each in (product, transposed, batched, convolution, prepared, double, integer)
}


def packs(made: Compilation) -> list[str]:
    """The entries of the items that pack."""
    return [kernel.entry for kernel in made.program.kernels if kernel.entry.startswith("pack_")]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("isa", ["cpu:x86-64-v2", "cpu:x86-64-v3", AVX512])
def test_a_contraction_of_what_is_packed_gives_what_the_reference_gives(name: str, isa: str) -> None:
    graph = graph_of(CASES[name])
    made = compiled(graph, isa)
    assert len(packs(made)) == 1
    if not runs_here(isa):
        pytest.skip(f"this processor lacks instructions of {isa}")
    for n in (1, 4, 19, 40):
        symbols = {symbol: max(n, low) for symbol, (low, _) in graph.symbols.items()}
        arrays = arrays_for(graph, next(iter(symbols.values()), 0))
        found = checked.run(made, *arrays, threads=2, **symbols)  # as it is, and with its parameters bound
        for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(one, other, 1e-5, 1e-5)


def test_a_pack_is_an_item_that_is_prepared_and_its_reader_reads_panels() -> None:
    made = compiled(graph_of(product), AVX512, texts=["pack-parameters"])
    assert made.program.prepare == (0,)
    (packed,) = (made.program.buffers[made.program.kernels[0].buffers[slot]] for slot in made.program.kernels[0].outs)
    assert packed.shape == (3, 40, 32)
    check_ir(
        made.dumps["pack-parameters"],
        """
        // CHECK: #[[PANELS:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
        // CHECK: %[[P:.*]] = call @pack_0(%arg1) {{.*}}kiln.prepare{{.*}} -> tensor<3x40x32xf32>
        // CHECK: call @kernel_0_packed_1(%arg0, %[[P]], %arg2)
        // CHECK: linalg.pack %arg0 {{.*}} outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32]
        // CHECK: func.func private @kernel_0_packed_1({{.*}}tensor<3x40x32xf32> {kiln.in_panels}
        // CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[PANELS]], {{.*}}]
        """,
    )


def test_the_weights_of_a_convolution_are_packed_by_output_channels() -> None:
    text = compiled(graph_of(convolution), AVX512, texts=["pack-parameters"]).dumps["pack-parameters"]
    check_ir(
        text, "// CHECK: inner_dims_pos = [0] inner_tiles = [13] {{.*}}tensor<37x6x3x3xf32> -> tensor<3x6x3x3x13xf32>"
    )


def test_kernels_share_a_packed_parameter() -> None:
    def write(b: Builder) -> Tensor:
        weights = b.parameter("float32", (32, 64))
        one, other = b.input("float32", (16, 32)), b.input("float32", (48, 32))
        b.output(one @ weights)
        return other @ weights

    assert len(packs(compiled(graph_of(write)))) == 1


def test_a_kernel_stays_as_it_is_where_what_it_reads_is_no_parameter() -> None:
    def write(b: Builder) -> Tensor:
        x, weights = b.input("float32", (16, 64)), b.parameter("float32", (64, 64))
        b.output(x @ weights)
        return b.input("float32", (16, 64)) @ b.input("float32", (64, 64))

    entries = {kernel.entry for kernel in compiled(graph_of(write)).program.kernels}
    assert entries == {"pack_0", "kernel_0", "kernel_0_packed_1"}


def read_twice(b: Builder) -> Tensor:
    """Its elements are an epilogue's too, in rows."""
    weights = b.parameter("float32", (64, 64))
    return b.input("float32", (64, 64)) @ weights + weights


def half(b: Builder) -> Tensor:
    return b.input("float32", (16, 64)) @ b.parameter("float16", (64, 64)).cast("float32")


def narrow(b: Builder) -> Tensor:
    return b.input("float32", (16, 64)) @ b.parameter("float32", (64, 8))


def strided(b: Builder) -> Tensor:
    """Every second column: elements that are not side by side."""
    return b.input("float32", (16, 64)) @ b.parameter("float32", (64, 80))[:, ::2]


@pytest.mark.parametrize("write", [read_twice, half, narrow, strided])
def test_parameters_without_gain_are_not_packed(write: Write) -> None:
    assert packs(compiled(graph_of(write), AVX512)) == []


@pytest.mark.parametrize("options", [CompileOptions(fusion=False), CompileOptions(schedule="none")])
def test_a_second_opinion_packs_nothing(options: CompileOptions) -> None:
    assert packs(compile_request(CompileRequest(graph_of(product), target(AVX512), options))) == []


@pytest.mark.parametrize("width", [5, 7, 14, 15, 16, 17, 28, 33])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_windows_of_any_width_are_packed_by_their_runs(width: int, stride: int, dilation: int) -> None:
    b = Builder("windows")
    x, weights = b.input("float32", (1, 5, 9, width)), b.parameter("float32", (16, 5, 3, 3))
    graph = output(b, conv2d(x, weights, stride=stride, padding=(dilation, dilation), dilation=dilation))
    arrays = arrays_for(graph, 0)
    (found,) = checked.run(compiled(graph), *arrays)
    np.testing.assert_allclose(found, evaluate(graph, *arrays)[0], 1e-5, 1e-5)


@pytest.mark.parametrize("columns", [8, 15, 16, 17, 31, 32, 33, 48, 49, 250, 256, 257, 273])
def test_products_of_any_number_of_columns_agree(columns: int) -> None:
    b = Builder("columns")
    graph = output(b, b.input("float32", (30, 300)) @ b.input("float32", (300, columns)))
    arrays = arrays_for(graph, 0)
    (found,) = checked.run(compiled(graph), *arrays)
    np.testing.assert_allclose(found, evaluate(graph, *arrays)[0], 1e-5, 1e-5)

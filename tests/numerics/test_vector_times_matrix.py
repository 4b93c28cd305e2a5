"""A vector times a matrix: rows stream by several at a time, also those of weights that are widened where they are
read.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, sigmoid, unpack
from tensorkiln.build.packing import pack_array
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.spec import CompiledProgram
from tests import checked
from tests.compiled import compiled, proven, runs_here

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"]
BLOCK = 32


def check(graph: Graph, target: str, *sizes: dict[str, int]) -> None:
    """Against the reference at each of these sizes of the symbols, in memory that ends where the operands do."""
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    made = proven(graph, target)
    for symbols in sizes or ({},):
        rng = np.random.default_rng(7)
        arrays: list[np.ndarray] = []
        for var in graph.input_vars:
            known = graph.types[var]
            shape = [dim if isinstance(dim, int) else symbols[str(dim)] for dim in known.shape]
            dtype = known.dtype.numpy
            is_float = np.issubdtype(dtype, np.floating)
            arrays.append((rng.standard_normal(shape) if is_float else rng.integers(0, 100, shape)).astype(dtype))
        found = checked.run(made, *arrays, threads=2, **symbols)
        for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(one, other, 2e-4, 2e-3)


def dequantised(codes: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """Weights of a narrow type, with a scale for each column."""
    wide = codes.cast("int32")
    return (wide if zero is None else wide - zero.cast("int32")).cast("float32") * scale


def in_blocks(scale: Tensor, rows: int) -> Tensor:
    """A scale for each block of a column, repeated for the rows of the block."""
    blocks, columns = scale.shape
    return scale.unsqueeze([1]).expand([blocks, BLOCK, columns]).reshape([rows, columns])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("depth", "columns"), [(5, 8), (64, 67), (129, 200), (600, 33), (71, 2500)])
def test_products_of_a_vector_have_parts_of_vectors_and_of_blocks(depth: int, columns: int, target: str) -> None:
    b = Builder("product")
    b.output(b.input("float32", (1, depth)) @ b.input("float32", (depth, columns)))
    check(b.graph(), target)


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_a_vector_have_symbolic_extents(target: str) -> None:
    b = Builder("product")
    k, n = b.symbol("k", 1, 600), b.symbol("n", 1, 3000)
    b.output(b.input("float32", (1, k)) @ b.input("float32", (k, n)))
    check(b.graph(), target, *({"k": k, "n": n} for k, n in ((1, 9), (70, 40), (130, 1), (513, 129))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float8_e4m3fn"])
def test_weights_of_a_product_are_widened_where_they_are_read(dtype: str, target: str) -> None:
    b = Builder("product")
    x, codes = b.input("float32", (3, 1, 96)), b.parameter(dtype, (96, 131))
    scale, zero = b.parameter("float32", (131,)), b.parameter(dtype, (131,))
    is_float = dtype.startswith("float")
    weights = codes.cast("float32") * scale if is_float else dequantised(codes, scale, zero)
    b.output(x[0] @ weights)
    check(b.graph(), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "float4_e2m1fn"])
def test_packed_weights_have_scales_in_blocks(dtype: str, target: str) -> None:
    b = Builder("product")
    rows, columns, per_byte = 2 * BLOCK, 70, 4 if dtype == "int2" else 2
    x, packed = b.input("float32", (1, rows)), b.parameter("uint8", (rows * columns // per_byte,))
    codes, scale = unpack(packed, dtype, (rows, columns)), b.parameter("float32", (2, columns))
    b.output(x @ (codes.cast("float32") * in_blocks(scale, rows)))
    check(b.graph(), target)


def decoder(dtype: str, width: int, hidden: int) -> Graph:
    """A gated network for one token, whose weights have one byte for an element."""
    b = Builder("decoder")
    x = b.input("float32", (1, 1, width))

    def linear(x: Tensor, depth: int, columns: int) -> Tensor:
        return x @ dequantised(b.parameter(dtype, (depth, columns)), b.parameter("float32", (columns,)))

    gate, up = linear(x, width, hidden), linear(x, width, hidden)
    b.output(x + linear(gate * sigmoid(gate) * up * 1e-6, hidden, width))
    return b.graph()


def largest(program: CompiledProgram) -> int:
    """Bytes of the largest buffer that is no input."""
    sizes = [buffer.size_bytes for buffer in program.buffers if buffer.role != "input"]
    return max(size for size in sizes if isinstance(size, int))


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_a_token_share_a_kernel(target: str) -> None:
    check(decoder("int8", 40, 1100), target)


def test_widened_weights_are_not_stored() -> None:
    program = compiled(decoder("int8", 256, 1024)).program
    assert largest(program) <= 16384, "256 x 1024 weights of float32 would take a mebibyte"


@pytest.mark.parametrize(("steps", "size"), [(1, 4096), (40, 2097152), (1500, 2097152)])
def test_much_arithmetic_on_weights_is_done_once(steps: int, size: int) -> None:
    b = Builder("product")
    x, weights = b.input("float32", (1, 512)), b.parameter("int8", (512, 1024)).cast("float32")
    scale = b.parameter("float32", (1024,))
    for _ in range(steps):
        weights = weights * scale + scale
    b.output(x @ weights)
    assert largest(compiled(b.graph()).program) == size


def test_packed_weights_are_unpacked_once() -> None:
    rows, columns = 128, 1024
    b = Builder("product")
    x, packed = b.input("float32", (1, rows)), b.parameter("uint8", (rows * columns // 2,))
    codes = unpack(packed, "int4", (rows, columns))
    b.output(x @ (codes.cast("float32") * in_blocks(b.parameter("float32", (4, columns)), rows)))
    graph = b.graph()
    program = compiled(graph).program
    assert largest(program) == rows * columns
    weights = np.random.default_rng(1).integers(-8, 8, (rows, columns)).astype(ml_dtypes.int4)
    scale = np.full((4, columns), 0.5, np.float32)
    (result,) = checked.run(compiled(graph), np.ones((1, rows), np.float32), pack_array(weights), scale)
    np.testing.assert_allclose(result[0], weights.astype(np.float32).sum(0) / 2, 1e-5, 1e-4)

"""Weights of narrow dtypes, unpacked and scaled in the graph: compiled code against the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, pack, pack_array, unpack
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked, emulated
from tests.numerics.cases import compare

Run = Callable[..., tuple[Any, ...]]
Ready = Callable[[Graph], Run]
Array = np.ndarray[Any, Any]

MACHINES = pytest.mark.parametrize("ready", [checked.ready, emulated.ready], ids=["cpu", "gpu"])
PACKED = [dtype for dtype in DType if dtype.is_narrow and dtype.bits < 8]
FLOATS_8 = [dtype for dtype in DType if dtype.is_narrow and dtype.bits == 8]
RNG = np.random.default_rng(11)


def codes(dtype: DType, *shape: int) -> Array:
    """Finite elements, chosen so that sums of a few are exact in float32 in any order."""
    return RNG.integers(0, 4, shape).astype(np.float32).astype(dtype.numpy)


def agree(made: Run, graph: Graph, *arrays: Array, **symbols: int) -> None:
    expected = evaluate(graph, *arrays, **symbols)
    compare(made(*arrays, **symbols), expected)


def whole(*shape: int) -> Array:
    return RNG.integers(-4, 5, shape).astype(np.float32)


@MACHINES
@pytest.mark.parametrize("dtype", PACKED)
def test_a_packed_weight_is_unpacked_and_scaled_for_a_product(dtype: DType, ready: Ready) -> None:
    b = Builder("quantized")
    rows = b.symbol("n", 1, 32)
    depth, columns = 24, 17  # An odd number of columns: rows begin within a byte.
    x = b.input("float32", (rows, depth))
    packed = b.input("uint8", (-(-depth * columns * dtype.bits // 8),))
    scale = b.input("float32", (1, columns))
    weight = unpack(packed, dtype, (depth, columns))
    b.output(x @ (weight.cast("float32") * scale), weight.transpose(1, 0))
    scales = np.exp2(RNG.integers(-2, 3, (1, columns))).astype(np.float32)
    graph = b.graph()
    made = ready(graph)
    for n in (1, 9):
        agree(made, graph, whole(n, depth), pack_array(codes(dtype, depth, columns)), scales, n=n)


@MACHINES
@pytest.mark.parametrize("dtype", FLOATS_8)
def test_a_product_reads_8_bit_floats_and_is_rounded_to_them(dtype: DType, ready: Ready) -> None:
    b = Builder("product")
    rows = b.symbol("n", 1, 64)
    x, weight = b.input(dtype, (rows, 32)), b.input(dtype, (32, 48))
    product = x.cast("float32") @ weight.cast("float32")
    b.output(product, product.cast(dtype, saturate=True), (product / 3).cast(dtype))
    graph = b.graph()
    made = ready(graph)
    for n in (3, 40):
        agree(made, graph, codes(dtype, n, 32), codes(dtype, 32, 48), n=n)


@MACHINES
@pytest.mark.parametrize("dtype", [DType.INT4, DType.FLOAT4_E2M1FN, DType.UINT2])
def test_symbolic_rows_are_packed(dtype: DType, ready: Ready) -> None:
    b = Builder("packed")
    rows = b.symbol("n", 1, 32)
    x = b.input(dtype, (rows, 3))
    packed = pack(x)
    b.output(packed, unpack(packed, dtype, (rows, 3)).cast("float32"))
    graph = b.graph()
    agree(ready(graph), graph, codes(dtype, 7, 3), n=7)


@MACHINES
@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_narrow])
def test_bits_above_those_of_an_element_change_nothing(dtype: DType, ready: Ready) -> None:
    b = Builder("above")
    x = b.input(dtype, (256,))
    b.output(x.cast("float32"), x.cast("int8"), x.bitcast("uint8"), x.cast("bool"))
    graph = b.graph()
    agree(ready(graph), graph, np.arange(256, dtype=np.uint8).view(dtype.numpy))


@MACHINES
@pytest.mark.parametrize("dtype", FLOATS_8)
def test_rows_of_8_bit_floats_are_read_once_and_reduced(dtype: DType, ready: Ready) -> None:
    b = Builder("rows")
    rows = b.symbol("n", 1, 8)
    x = b.input(dtype, (rows, 200))
    wide = x.cast("float32")
    b.output(wide.sum([1]), wide.max([1]), x.transpose(1, 0), x[:, ::-1])
    graph = b.graph()
    agree(ready(graph), graph, codes(dtype, 5, 200), n=5)

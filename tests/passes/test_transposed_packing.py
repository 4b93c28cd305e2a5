"""Operands that are contiguous across the order in which they are packed: squares are transposed in registers."""

from __future__ import annotations

import numpy as np
import pytest

from dialect.mlir import ir
from tensorkiln.build import Builder, transpose
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled
from tests.filecheck import check_ir
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.modules import after, output

TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")
LANES: dict[str, int] = dict(zip(TARGETS, (4, 8, 16, 4), strict=True))


def product(dtype: str, rows: int | str, columns: int, depth: int, *, left: bool, right: bool) -> Graph:
    """A product of matrices, of which those that are named are stored transposed."""
    b = Builder("product")
    if isinstance(rows, str):
        b.symbol(rows, 1, 100)
    x = b.input(dtype, (depth, rows) if left else (rows, depth))
    y = b.input(dtype, (columns, depth) if right else (depth, columns))
    return output(b, (transpose(x) if left else x) @ (transpose(y) if right else y))


def packs(graph: Graph, target: str) -> str:
    """The functions that pack."""
    module = after("realise", graph, target)
    names = (ir.StringAttr(op.operation.attributes["sym_name"]).value for op in module.body.operations)
    return "\n".join(
        str(op) for name, op in zip(names, module.body.operations, strict=False) if name.startswith("pack_")
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_square_is_loaded_by_vectors_and_shuffled(target: str) -> None:
    lanes = LANES[target]
    text = packs(product("float32", 64, 64, 64, left=False, right=True), target)
    check_ir(
        text,
        f"""
        // CHECK: func.func private @pack_float32_float32_{{{{.*}}}}_transposed_{lanes}
        // CHECK-COUNT-{lanes}: vector.maskedload {{{{.*}}}}vector<{lanes}xf32>
        // CHECK-COUNT-{lanes * (lanes.bit_length() - 1)}: vector.shuffle
        // CHECK-COUNT-{lanes}: vector.store
        // CHECK: vector.gather
        """,
    )


def test_contiguous_operands_are_packed_by_copies() -> None:
    assert "transposed" not in packs(product("float32", 64, 64, 64, left=False, right=False), "cpu:x86-64-v4")


def widened(dtype: str, rows: int, columns: int, depth: int) -> Graph:
    """A product with a matrix of narrow elements that is stored transposed, as weights of PyTorch are."""
    b = Builder("product")
    x, y = b.input("float32", (rows, depth)), b.input(dtype, (columns, depth))
    return output(b, x @ transpose(y).cast("float32"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_narrow_elements_are_widened_and_shuffled(dtype: str, target: str) -> None:
    lanes = LANES[target]
    text = packs(widened(dtype, 64, 64, 64), target)
    check_ir(
        text,
        f"""
        // CHECK: func.func private @pack_{dtype}_float32_{{{{.*}}}}_transposed_{lanes}
        // CHECK-COUNT-{lanes}: vector.load {{{{.*}}}}vector<{lanes}xi{8 if dtype == "uint8" else 16}>
        // CHECK-COUNT-{lanes * (lanes.bit_length() - 1)}: vector.shuffle {{{{.*}}}}vector<{lanes}xf32>
        // CHECK-COUNT-{lanes}: vector.store
        """,
    )


def test_elements_that_are_packed_as_pairs_are_gathered() -> None:
    assert "transposed" not in packs(product("int8", 64, 64, 64, left=False, right=True), "cpu:x86-64-v4")


def draw(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)


SHAPES = ((64, 64, 64), (37, 47, 65), (16, 33, 300), (5, 8, 15), (100, 17, 16))
SIDES = ((True, False), (False, True), (True, True))
OF_WORDS = (("float32", "int32"), ("float64", "int64"))
"""Of either size one dtype by turns, or both with KILN_EXAMPLES: each meets each shape, and each side."""


@pytest.mark.parametrize(
    ("dtype", "shape", "left", "right"),
    [
        (dtype, shape, *sides)
        for place, shape in enumerate(SHAPES)
        for turn, sides in enumerate(SIDES)
        for dtypes in OF_WORDS
        for dtype in (dtypes if EXAMPLES > 1 else [dtypes[(place + turn) % 2]])
    ],
)
def test_products_of_transposed_matrices_are_exact_in_their_memory(
    dtype: str, shape: tuple[int, int, int], left: bool, right: bool
) -> None:
    rows, columns, depth = shape
    graph = product(dtype, rows, columns, depth, left=left, right=right)
    x, y = draw(dtype, (rows, depth)), draw(dtype, (depth, columns))
    arrays = (np.ascontiguousarray(x.T) if left else x, np.ascontiguousarray(y.T) if right else y)
    np.testing.assert_array_equal(checked.run(compiled(graph), *arrays)[0], x @ y)


@pytest.mark.parametrize("target", ["cpu:native", "cpu:x86-64-v2", "cpu:x86-64-v3"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_products_of_narrow_transposed_matrices_are_exact_in_their_memory(dtype: str, target: str) -> None:
    for rows, columns, depth in SHAPES if EXAMPLES > 1 else SHAPES[1:4]:
        graph = widened(dtype, rows, columns, depth)
        x = draw("float32", (rows, depth))
        y = np.abs(draw("float32", (columns, depth)))
        arrays = x, y.astype(DType(dtype).numpy)
        np.testing.assert_array_equal(checked.run(compiled(graph, target), *arrays)[0], x @ y.T)


def test_rows_of_any_number_are_transposed() -> None:
    graph = product("float32", "n", 40, 50, left=True, right=True)
    made = compiled(graph)
    for rows in (1, 15, 16, 100):
        arrays = draw("float32", (50, rows)), draw("float32", (40, 50))
        (found,) = checked.run(made, *arrays, n=rows)
        np.testing.assert_array_equal(found, evaluate(graph, *arrays, n=rows)[0], f"n = {rows}")


def test_a_batch_of_them_is_transposed() -> None:
    b = Builder("scores")
    graph = output(b, b.input("float32", (3, 20, 48)) @ transpose(b.input("float32", (3, 35, 48))))
    arrays = draw("float32", (3, 20, 48)), draw("float32", (3, 35, 48))
    np.testing.assert_array_equal(checked.run(compiled(graph), *arrays)[0], evaluate(graph, *arrays)[0])

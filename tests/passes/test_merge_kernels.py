"""Equal kernels become one function, which is compiled once and launched from several items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, matmul, relu
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.schedule import KernelItem
from tests import emulated
from tests.compiled import compiled, program
from tests.filecheck import check_ir
from tests.passes.modules import after, output
from tests.passes.test_aliasing import chain


def layers(widths: Sequence[int], rows: int | str = 24) -> Graph:
    """Products with a relu behind, one for each two neighbouring widths."""
    b = Builder("layers")
    leading = b.symbol("n", 1, 64) if rows == "n" else rows
    y = b.input("float32", (leading, widths[0]))
    for above, below in pairwise(widths):
        y = relu(matmul(y, b.input("float32", (above, below))))
    return output(b, y)


def arrays_of(widths: Sequence[int], rows: int = 24) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    rng = np.random.default_rng(1)
    shapes = [(rows, widths[0]), *pairwise(widths)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_equal_kernels_become_one_function_and_calls_keep_their_nodes() -> None:
    check_ir(
        after("merge-kernels", layers([16, 32, 32, 32])),  # the first is another
        """
        // CHECK: func.func @graph
        // CHECK: call @kernel_0({{.*}}) {{{.*}}kiln.nodes = array<i64: [[FIRST:[0-9, ]*]]>, kiln.roots
        // CHECK: call @kernel_1({{.*}}) {{{.*}}kiln.nodes = array<i64: [[SECOND:[0-9, ]*]]>, kiln.roots
        // CHECK-NOT: [[SECOND]]>
        // CHECK: call @kernel_1({{.*}}) {{{.*}}kiln.nodes
        // CHECK: func.func private @kernel_0(
        // CHECK: func.func private @kernel_1(
        // CHECK-NOT: func.func
        """,
    )


def test_kernels_that_differ_in_a_field_stay_apart() -> None:
    b = Builder("fields")
    x = b.input("float32", (8, 16))
    y = b.input("float32", (8, 16))
    graph = output(b, x.sum(0), y.max(0))
    check_ir(
        after("merge-kernels", graph),
        """
        // CHECK: call @kernel_0
        // CHECK: call @kernel_1
        // CHECK: func.func private @kernel_0(
        // CHECK: func.func private @kernel_1(
        """,
    )


@pytest.mark.parametrize("rows", [24, "n"])
@pytest.mark.parametrize("target", ["cpu:native", "cuda:sm_90"])
def test_a_shared_function_computes_what_each_item_does(target: str, rows: int | str) -> None:
    graph, arrays = layers([32] * 6, rows), arrays_of([32] * 6)
    symbols = {"n": 24} if rows == "n" else {}
    made = compiled(graph, target)
    kernels = made.program.kernels
    assert (len(kernels), len({kernel.name for kernel in kernels})) == (5, 5)
    assert len({kernel.entry for kernel in kernels}) == 1
    found = emulated.run(graph, *arrays, **symbols) if "cuda" in target else program(made)(*arrays, **symbols)
    np.testing.assert_allclose(found[0], evaluate(graph, *arrays, **symbols)[0], rtol=1e-4, atol=1e-3)


def test_items_of_a_shared_function_name_their_own_nodes() -> None:
    graph = layers([32] * 4)
    operations = [item.operation for item in compiled(graph).program.schedule.items]
    nodes = [{ref.node for ref in operation.ops} for operation in operations if isinstance(operation, KernelItem)]
    assert len(nodes) == 3
    own = [these - set.union(*(others for others in nodes if others is not these)) for these in nodes]
    assert len(set(map(len, own))) == 1, "as many as each of the others"
    assert all(own)


def test_a_step_that_computes_in_place_has_an_entry_of_its_own() -> None:
    graph = chain(3, 64)
    made = compiled(graph)
    subtractions = made.program.kernels[1::2]
    assert [bool(set(kernel.ins) & set(kernel.outs)) for kernel in subtractions] == [False, True, True]
    assert [kernel.entry for kernel in subtractions] == ["kernel_1", "kernel_1_1", "kernel_1_1"]
    array = np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32)
    np.testing.assert_array_equal(program(made)(array)[0], evaluate(graph, array)[0])

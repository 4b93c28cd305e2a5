"""Stored values that lie in other values take no kernel and no memory."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, matmul, relu, scatter
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tests.compiled import compiled, program
from tests.dialect.wire import binop, buffer, buffer_view, graph_of, inputs_of, placeholder, unary
from tests.filecheck import check_ir
from tests.passes.modules import kernels, output, shape_of_kernels


def node(kind: str, var: int, source: int, dtype: str = "float32", **fields: object) -> dict[str, object]:
    return {"node": kind, "in_var": source, "out_var": var, "dtype": dtype, **fields}


def contiguous(var: int, source: int) -> dict[str, object]:
    return node("contiguous", var, source)


def reshape(var: int, source: int, *shape: object) -> dict[str, object]:
    return node("reshape", var, source, new_shape=list(shape))


def shrink(var: int, source: int, *limits: tuple[object, object]) -> dict[str, object]:
    return node("shrink", var, source, limits=[list(pair) for pair in limits])


def bitcast(var: int, source: int, dtype: str) -> dict[str, object]:
    return node("bitcast", var, source, dtype, target_dtype=dtype)


def sort(var: int, source: int) -> dict[str, object]:
    attributes = [{"name": "axis", "kind": "int", "value": 0}]
    return {
        "node": "custom",
        "op_name": "sort",
        "in_vars": [source],
        "attributes": attributes,
        "out_var": var,
        "dtype": "float32",
    }


def checked(graph: Graph, **symbols: int) -> Program:
    """The program, after a call that computes what the reference does and returns arrays of their own."""
    made = program(compiled(graph))
    arrays = inputs_of(graph, symbols)
    results = made(*arrays, **symbols)
    for actual, expected in zip(results, evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_array_equal(actual, expected)
    for position, one in enumerate(results):
        assert not any(np.shares_memory(one, other) for other in (*arrays, *results[position + 1 :]))
    return made


def groups(made: Program) -> list[tuple[int | None, object]]:
    """`(group, offset)` of every buffer."""
    return [(buffer.alias_group, buffer.offset) for buffer in made.compiled.buffers]


def test_an_argument_in_another_shape_needs_no_kernel() -> None:
    graph = graph_of([placeholder(0, [4, 6]), reshape(1, 0, 3, 8)], [1])
    check_ir(
        kernels(graph),
        """
        // CHECK: func.func @graph(%[[X:[^:]*]]: tensor<4x6xf32>)
        // CHECK-NEXT: %[[V:.*]] = "kiln.buffer_view"(%[[X]]) {offset = 0 : i64, size = 24 : i64}
        // CHECK-NEXT: return %[[V]] : tensor<3x8xf32>
        // CHECK-NOT: func.func
        """,
    )
    made = checked(graph)
    assert made.compiled.kernels == ()
    assert groups(made) == [(0, 0), (0, 0)]


def test_a_kernels_result_in_another_shape_is_stored_once() -> None:
    made = checked(graph_of([placeholder(0, [4, 6]), contiguous(1, 0), unary(2, 1), reshape(3, 2, 24)], [2, 3]))
    assert len(made.compiled.kernels) == 1
    assert [buffer.role for buffer in made.compiled.buffers] == ["input", "output", "output"]
    assert groups(made) == [(None, 0), (0, 0), (0, 0)]


def test_a_product_in_another_shape_is_written_where_the_result_is() -> None:
    b = Builder("flattened")
    x, w = b.input("float32", (16, 32)), b.input("float32", (32, 24))
    made = checked(output(b, matmul(x, w).reshape(4, 96)))
    (kernel,) = made.compiled.kernels
    assert [made.compiled.buffers[number].role for number in kernel.buffers[:3]] == ["input", "input", "temp"]
    assert made.compiled.buffers[kernel.buffers[2]].alias_group == 0
    assert made.compiled.outputs[0].buffer != kernel.buffers[2]
    assert made.planned_peak_bytes() < 4 * 16 * 24 + sum(
        int(str(buffer.size_bytes)) for buffer in made.compiled.buffers if buffer.role == "scratch"
    ) + 64 * len(made.compiled.buffers), "the product is the result: there is no other buffer for it"


@pytest.mark.parametrize(("first", "alignment"), [(0, 64), (1, 4), (2, 8), (4, 16), (16, 64)])
def test_leading_rows_are_a_window_as_aligned_as_their_offset(first: int, alignment: int) -> None:
    made = checked(graph_of([placeholder(0, [20]), shrink(1, 0, (first, 20))], [1]))
    assert made.compiled.kernels == ()
    window = made.compiled.buffers[1]
    assert (window.offset, window.alignment) == (4 * first, alignment)


def test_an_offset_may_depend_on_symbols() -> None:
    rows = {"op": "mul", "args": [2, "n"]}
    nodes = [placeholder(0, [rows, 6]), shrink(1, 0, ("n", rows), (0, 6))]
    made = checked(graph_of(nodes, [1], bounds={"n": (0, 9)}), n=5)
    assert made.compiled.kernels == ()
    window = made.compiled.buffers[1]
    assert (window.offset, window.alignment) == (24 * expr.symbol("n"), 8)
    for n in (0, 1, 9):
        checked(graph_of(nodes, [1], bounds={"n": (0, 9)}), n=n)


def test_a_view_of_a_view_is_a_window_of_the_buffer() -> None:
    nodes = [placeholder(0, [24]), buffer_view(1, 0, 4, 16), buffer_view(2, 1, 3, 8)]
    made = checked(graph_of(nodes, [2, 1]))
    assert made.compiled.kernels == ()
    assert sorted(str(buffer.offset) for buffer in made.compiled.buffers) == ["0", "16", "28"]


def test_a_view_of_the_bytes_of_a_result_is_a_window() -> None:
    nodes = [placeholder(0, [6]), unary(1, 0), buffer_view(2, 1, 2, 8, "uint8")]
    made = checked(graph_of(nodes, [1, 2]))
    assert len(made.compiled.kernels) == 1
    assert groups(made) == [(None, 0), (0, 0), (0, 8)]


def test_bits_of_another_type_are_a_window() -> None:
    made = checked(graph_of([placeholder(0, [6]), unary(1, 0), bitcast(2, 1, "int32")], [1, 2]))
    assert len(made.compiled.kernels) == 1
    assert groups(made) == [(None, 0), (0, 0), (0, 0)]


def test_columns_are_no_window() -> None:
    made = checked(graph_of([placeholder(0, [4, 6]), shrink(1, 0, (0, 4), (1, 5))], [1]))
    assert len(made.compiled.kernels) == 1
    assert groups(made) == [(None, 0), (None, 0)]


def test_a_padded_value_of_the_same_size_is_no_window() -> None:
    padded = node("pad", 2, 1, pad_width=[[0, 8]])
    made = checked(graph_of([placeholder(0, [24]), shrink(1, 0, (0, 16)), padded], [2]))
    assert len(made.compiled.kernels) == 1


def test_a_part_of_what_is_not_returned_is_copied_out_of_it() -> None:
    """A window would keep all of it until the end."""
    nodes = [placeholder(0, [64, 8]), node("flip", 1, 0, axes=[0]), contiguous(2, 1), shrink(3, 2, (0, 8), (0, 8))]
    made = checked(graph_of(nodes, [3]))
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers)
    made = checked(graph_of(nodes, [3, 2]))
    assert len(made.compiled.kernels) == 1


def test_bytes_of_a_bool_are_computed() -> None:
    """As a number it is 0 or 1, whatever byte the caller's array has."""
    nodes = [placeholder(0, [6], "bool"), bitcast(1, 0, "uint8"), reshape(2, 0, 2, 3)]
    nodes[2] = {**nodes[2], "dtype": "bool"}
    graph = graph_of(nodes, [1, 2])
    odd = np.array([0, 1, 2, 255, 0, 7], np.uint8).view(np.bool_)
    numbers, flags = program(compiled(graph))(odd)
    assert numbers.tolist() == [0, 1, 1, 1, 0, 1]
    assert flags.view(np.uint8).tolist() == [[0, 1, 1], [1, 0, 1]]


def test_an_argument_is_not_viewed_as_a_wider_type_than_its_own() -> None:
    """Nobody aligned it for that."""
    graph = graph_of([placeholder(0, [12], "uint8"), bitcast(1, 0, "float32"), sort(2, 1)], [2])
    (kernel,) = compiled(graph).program.kernels
    assert kernel.name == "kernel_0"
    unaligned = np.arange(13, dtype=np.uint8)[1:]
    assert program(compiled(graph))(unaligned)[0].tobytes() == np.sort(unaligned.copy().view(np.float32)).tobytes()


def test_a_kernel_reads_a_window_as_elements_of_its_base() -> None:
    size = 1 << 16
    nodes = [placeholder(0, [4, size // 4]), unary(1, 0), reshape(2, 1, size), contiguous(3, 2)]
    nodes.append(node("flip", 4, 3, axes=[0]))
    graph = graph_of([*nodes, binop(5, 4, 3)], [1, 5])
    check_ir(
        kernels(graph),
        """
        // CHECK: func.func private @kernel_1(%[[B:[^:]*]]: tensor<4x16384xf32>) -> tensor<65536xf32>
        // CHECK-NEXT: %[[V:.*]] = "kiln.buffer_view"(%[[B]]) {offset = 0 : i64, size = 65536 : i64}
        // CHECK-NEXT: "kiln.flip"(%[[V]])
        // CHECK: kiln.root
        """,
    )
    made = checked(graph)
    assert len(made.compiled.kernels) == 2


def test_a_callback_is_given_the_window() -> None:
    made = checked(graph_of([placeholder(0, [4, 6]), unary(1, 0), reshape(2, 1, 24), sort(3, 2)], [3, 1]))
    assert [item.operation.op for item in made.compiled.schedule.items] == ["kernel", "host_callback"]
    (edge,) = made.compiled.schedule.dependencies
    assert (edge.dep_from, edge.dep_to, edge.kind) == (0, 1, "data")


def test_operands_of_a_scatter_are_buffers_of_their_own() -> None:
    b = Builder("scatter")
    indices, updates = b.input("int32", (8, 4)), b.input("float32", (4, 8))
    made = checked(output(b, scatter(indices.reshape(4, 8), updates, 1, (4, 16))))
    assert len(made.compiled.kernels) == 2
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers)


def test_a_root_behind_a_window_still_shares_the_kernel_of_its_base() -> None:
    b = Builder("dense")
    x, w = b.input("float32", (16, 32)), b.input("float32", (32, 24))
    product = matmul(x, w)
    graph = output(b, product, relu(product.reshape(16, 1, 24).reshape(16, 24)))
    assert len(shape_of_kernels(graph)) == 1
    checked(graph)


def test_a_destination_that_was_declared_is_the_result_and_a_view_of_it_a_window() -> None:
    nodes = [placeholder(0, [8]), buffer(2, 8), binop(2, 0, 0), buffer_view(3, 2, 4, 4), unary(4, 3)]
    made = checked(graph_of(nodes, [2, 3, 4]))
    assert len(made.compiled.kernels) == 1
    assert groups(made) == [(None, 0), (0, 0), (None, 0), (0, 16)]


@pytest.mark.parametrize("kind", ["contiguous", "bitcast"])
def test_a_long_chain_of_windows_is_looked_through_at_once(kind: str) -> None:
    nodes: list[dict[str, object]] = [dict(placeholder(0, [16]))]
    for var in range(1, 4000):
        dtype = ("int32" if var % 2 else "float32") if kind == "bitcast" else "float32"
        nodes.append(bitcast(var, var - 1, dtype) if kind == "bitcast" else contiguous(var, var - 1))
    graph = graph_of([*nodes, unary(4000, 3998 if kind == "bitcast" else 3999)], [4000])
    made = checked(graph)
    assert len(made.compiled.kernels) <= 1 + 4000 // 48 * (kind == "bitcast")


def test_the_offset_of_a_view_counts_elements_of_its_base() -> None:
    part = {**shrink(1, 0, (3, 16)), "dtype": "float64"}
    graph = graph_of([placeholder(0, [16], "float64"), part, {**sort(2, 1), "dtype": "float64"}], [2])
    check_ir(kernels(graph), '// CHECK: "kiln.buffer_view"(%{{.*}}) {offset = 3 : i64, size = 13 : i64}')
    assert groups(checked(graph)) == [(0, 0), (0, 24), (None, 0)]

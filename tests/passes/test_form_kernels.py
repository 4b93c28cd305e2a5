"""Which values share a kernel, and what is stored between kernels."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from dialect.locations import node_pointers
from dialect.mlir import ir
from passes.fuse import form_kernels
from passes.fuse.groups import row_layout
from passes.fuse.materialise import MAX_DEPTH, live_values, materialised
from passes.loops.scalar_dag import walk
from tensorkiln import expr
from tensorkiln.build import Builder, cat, conv2d, exp, gather, matmul, pad, relu, scatter, shrink, softmax, transpose
from tensorkiln.expr import Dim
from tensorkiln.reference import evaluate
from tests.compiled import run
from tests.dialect.wire import Node, assign, binop, buffer, graph_of, inputs_of, placeholder, unary
from tests.filecheck import check_ir
from tests.passes.modules import bodies, decomposed, kernels, output, read_graph, shape_of_kernels


def test_a_chain_of_elementwise_ops_is_one_kernel() -> None:
    b = Builder("chain")
    x, y = b.input("float32", (8, 16)), b.input("float32", (8, 16))
    graph = output(b, relu(x * y + x).reshape(16, 8))
    check_ir(
        kernels(graph),
        """
        // CHECK: func.func @graph
        // CHECK-NEXT: %[[R:.*]] = call @kernel_0(%arg0, %arg1)
        // CHECK-NEXT: return %[[R]]
        // CHECK: func.func private @kernel_0(%arg0: tensor<8x16xf32>, %arg1: tensor<8x16xf32>) -> tensor<16x8xf32>
        // CHECK-SAME: kiln.rows = 2
        // CHECK-COUNT-1: kiln.root
        // CHECK-NOT: kiln.root
        // CHECK-NOT: func.func
        """,
    )


def test_a_softmax_is_one_kernel_that_shares_its_rows() -> None:
    b = Builder("softmax")
    graph = output(b, softmax(b.input("float32", (32, 100)), -1))
    assert shape_of_kernels(graph) == [(1, ["reduce_axis", "unary", "reduce_axis", "binop"])]


@pytest.mark.parametrize(("least", "kernels"), [(1, 1), (1 << 17, 3)])
def test_rows_of_a_symbolic_size_share_a_kernel_unless_all_are_long(least: int, kernels: int) -> None:
    b = Builder("softmax")
    graph = output(b, softmax(b.input("float32", (32, b.symbol("n", least, 1 << 20))), -1))
    assert len(shape_of_kernels(graph)) == kernels


@pytest.mark.parametrize("keys", [256, 1000, "n"])
@pytest.mark.parametrize("heads", [16, "h"])
@pytest.mark.parametrize("features", [32, 64, 128])
def test_products_of_a_row_and_a_matrix_are_kernels_of_their_own(keys: Dim, heads: Dim, features: int) -> None:
    b = Builder("decoding")
    b.symbol("n", 1, 4096)
    b.symbol("h", 1, 64)
    query = b.input("float32", (heads, 1, features))
    key, value = (b.input("float32", (heads, keys, features)) for _ in range(2))
    graph = output(b, softmax(query @ transpose(key) * 0.125) @ value)
    assert [roots for _, roots in shape_of_kernels(graph)] == [
        ["reduce_axis"],
        ["reduce_axis", "unary", "reduce_axis", "binop"],
        ["reduce_axis"],
    ]


def test_a_mean_of_windows_shares_their_kernel() -> None:
    b = Builder("excitation")
    x, filters = b.input("float32", (4, 32, 28, 28)), b.input("float32", (32, 1, 3, 3))
    windows = relu(conv2d(x, filters, padding=1, groups=32))
    graph = output(b, windows * windows.mean((2, 3), keepdims=True))
    assert shape_of_kernels(graph) == [(2, ["reduce_axis", "reduce_axis", "binop"])]


def test_a_value_of_which_only_the_padding_is_read_is_not_computed() -> None:
    b = Builder("padding")
    x = b.input("float32", (2, 3))
    y = relu(x)
    graph = output(b, y, shrink(pad(y.sum(1, keepdims=True), [(0, 0), (1, 0)]), [(0, 2), (0, 1)]))
    assert [roots for _, roots in shape_of_kernels(graph)] == [["binop"], ["shrink"]]
    array = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    outputs = run(graph, array)
    assert [output.tolist() for output in outputs] == [[[0, 0, 0], [1, 2, 3]], [[0], [0]]]


def test_a_product_with_its_bias_and_activation_is_one_kernel() -> None:
    b = Builder("dense")
    x, w, bias = b.input("float32", (32, 64)), b.input("float32", (64, 48)), b.input("float32", (48,))
    graph = output(b, relu(matmul(x, w) + bias))
    ((rows, roots),) = shape_of_kernels(graph)
    assert (rows, roots[0], len(roots)) == (2, "reduce_axis", 2)
    check_ir(
        kernels(graph),
        """
        // CHECK: %[[S:.*]] = "kiln.reduce_axis"{{.*}}kiln.root
        // CHECK: kiln.root
        // CHECK: return %{{[^ ,]*}} : tensor<32x48xf32>
        """,
    )


def test_a_sum_that_follows_a_product_is_not_part_of_it() -> None:
    b = Builder("product_then_sum")
    x, w = b.input("float32", (32, 64)), b.input("float32", (64, 48))
    assert [roots for _, roots in shape_of_kernels(output(b, matmul(x, w).sum(1)))] == [
        ["reduce_axis"],
        ["reduce_axis"],
    ]


def test_a_reduction_with_two_readers_is_computed_once() -> None:
    b = Builder("two_readers")
    x, y = b.input("float32", (32, 100)), b.input("float32", (100, 32))
    total = x.sum(1, keepdims=True)
    graph = output(b, x - total, y.permute(1, 0) * total)
    found = shape_of_kernels(graph)
    assert sum(roots.count("reduce_axis") for _, roots in found) == 1
    assert sum(len(roots) for _, roots in found) == 3


def test_reductions_over_different_axes_are_different_kernels() -> None:
    b = Builder("axes")
    x = b.input("float32", (512, 512))
    assert len(shape_of_kernels(output(b, x.sum(0), x.sum(1)))) == 2


def test_an_expensive_value_is_stored_before_it_is_expanded() -> None:
    b = Builder("expensive")
    x, y = b.input("float32", (64, 1, 8)), b.input("float32", (64, 512, 8))
    value = exp(exp(exp(exp(exp(exp(x))))))
    found = shape_of_kernels(output(b, value.expand(64, 512, 8) * y))
    assert [roots for _, roots in found] in ([["unary"], ["binop"]], [["unary", "binop"]], [["binop"], ["binop"]])
    assert sum(len(roots) for _, roots in found) == 2


def test_a_cheap_value_is_recomputed_where_it_is_expanded() -> None:
    b = Builder("cheap")
    x, y = b.input("float32", (64, 1, 8)), b.input("float32", (64, 512, 8))
    assert [roots for _, roots in shape_of_kernels(output(b, (-x).expand(64, 512, 8) * y))] == [["binop"]]


@pytest.mark.parametrize("kernel", [1, 3])
def test_an_image_made_of_channels_is_stored_before_a_convolution_of_it(kernel: int) -> None:
    """A window would find each pixel of a line in another channel. A product of single pixels reads them in place."""
    b = Builder("shuffle")
    x = b.input("float32", (b.symbol("n", 1, 4), 32, 5, 6))
    weight = b.input("float32", (4, 8, kernel, kernel))
    image = x.reshape("n", 8, 2, 2, 5, 6).permute(0, 1, 4, 2, 5, 3).reshape("n", 8, 10, 12)
    graph = output(b, relu(conv2d(image, weight, padding=(kernel // 2, kernel // 2))))
    stored = [kind for _, roots in shape_of_kernels(graph) for kind in roots]
    assert stored.count("reshape") == int(kernel > 1)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in ((3, 32, 5, 6), (4, 8, kernel, kernel))]
    np.testing.assert_allclose(run(graph, *arrays, n=3)[0], evaluate(graph, *arrays, n=3)[0], rtol=1e-5, atol=1e-5)


def test_a_costly_value_that_two_kernels_read_is_stored() -> None:
    b = Builder("shared")
    x = b.input("float32", (256, 256))
    value = exp(exp(x))
    found = shape_of_kernels(output(b, value.sum(0), value.sum(1)))
    assert sum(len(roots) for _, roots in found) == 3


def test_a_cheap_value_that_two_kernels_read_is_computed_twice() -> None:
    b = Builder("shared")
    x = b.input("float32", (256, 256))
    assert sum(len(roots) for _, roots in shape_of_kernels(output(b, (-x).sum(0), (-x).sum(1)))) == 2


@pytest.mark.parametrize(("parts", "is_stored"), [(2, False), (11, True)])
def test_a_cat_of_many_parts_that_two_kernels_read_is_stored(parts: int, is_stored: bool) -> None:
    b = Builder("steps")
    steps = cat([b.input("float32", (4, 1, 6)) for _ in range(parts)], 1)
    graph = output(b, steps.sum(0), steps.sum(2))
    assert any("cat" in roots for _, roots in shape_of_kernels(graph)) == is_stored
    arrays = [np.full((4, 1, 6), number, np.float32) for number in range(parts)]
    for found, expected in zip(run(graph, *arrays), evaluate(graph, *arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_scatter_is_alone() -> None:
    b = Builder("scatter")
    indices, updates = b.input("int32", (4, 8)), b.input("float32", (4, 8))
    graph = output(b, -scatter(indices, updates * updates, 1, (4, 16)))
    assert [roots for _, roots in shape_of_kernels(graph)] == [["binop"], ["scatter"], ["unary"]]


def custom(var: int, source: int) -> Node:
    attributes = [{"name": "axis", "kind": "int", "value": 0}, {"name": "descending", "kind": "int", "value": 0}]
    fields = {"op_name": "sort", "in_vars": [source], "attributes": attributes}
    return {"node": "custom", **fields, "out_var": var, "dtype": "float32"}


def copy(var: int, source: int) -> Node:
    fields = {"in_var": source, "target_device": "CPU", "clone": True}
    return {"node": "copy", **fields, "out_var": var, "dtype": "float32"}


@pytest.mark.parametrize("make", [custom, copy])
def test_host_operations_stand_between_kernels(make: Callable[[int, int], Node]) -> None:
    graph = graph_of([placeholder(0, [8]), unary(1, 0), make(2, 1), unary(3, 2)], [3])
    kind = make(2, 1)["node"]
    check_ir(
        kernels(graph),
        f"""
        // CHECK: func.func @graph
        // CHECK-NEXT: %[[A:.*]] = call @kernel_0(%arg0)
        // CHECK-NEXT: %[[B:.*]] = "kiln.{kind}"(%[[A]])
        // CHECK-NEXT: %[[C:.*]] = call @kernel_2(%[[B]])
        // CHECK-NEXT: return %[[C]]
        """,
    )
    assert [roots for _, roots in shape_of_kernels(graph)] == [["unary"], ["unary"]]


def test_an_operand_that_is_masked_out_everywhere_is_not_passed() -> None:
    b = Builder("masked")
    x, y = b.input("float32", (4,)), b.input("float32", (4,))
    graph = output(b, y + shrink(pad(-x, [(4, 0)]), [(0, 4)]))
    check_ir(kernels(graph), "// CHECK: call @kernel_0(%arg1)")
    arrays = inputs_of(graph, {})
    (actual,) = run(graph, *arrays)
    assert (actual == evaluate(graph, *arrays)[0]).all()


def test_an_argument_that_is_read_nowhere_stands_where_its_kernel_does() -> None:
    b = Builder("masked")
    others = [b.input("float32", (2,)) for _ in range(9)]
    x, y = b.input("float32", (4,)), b.input("float32", (4,))
    graph = output(b, y + shrink(pad(-x, [(4, 0)]), [(0, 4)]), *others)
    module = kernels(graph)
    (kernel,) = [op for op in module.body.operations if op.operation.attributes["sym_name"].value != "graph"]
    (storage,) = [op for op in kernel.regions[0].blocks[0].operations if op.operation.name == "kiln.buffer"]
    assert node_pointers(storage.location) == node_pointers(kernel.location)
    assert node_pointers(storage.location)


def test_ranges_without_elements_may_be_assigned_one_after_the_other() -> None:
    others = [placeholder(var, [2]) for var in (10, 11, 12)]
    updates = [placeholder(1, [0]), assign(2, 0, (1, [0, 0])), placeholder(3, [0]), assign(4, 0, (3, [1, 1]))]
    graph = graph_of([*others, buffer(0, 2), *updates], [0], inputs=[10, 11, 12, 0, 1, 3])
    arrays = inputs_of(graph, {})
    (actual,) = run(graph, *arrays)
    assert (actual == evaluate(graph, *arrays)[0]).all()


def test_a_long_chain_is_cut_at_the_depth_limit() -> None:
    nodes = [placeholder(0, [8]), *(unary(var, var - 1) for var in range(1, 3 * MAX_DEPTH))]
    graph = graph_of(nodes, [3 * MAX_DEPTH - 1])
    function = read_graph(decomposed(graph))
    stored = materialised(function, live_values(function))
    positions = [number for number, value in enumerate(function.values) if value in stored]
    gaps = [after - before for before, after in zip([-1, *positions], positions, strict=False)]
    assert max(gaps) <= MAX_DEPTH + 1
    assert len(positions) == 3


def test_a_chain_within_the_depth_limit_stores_only_its_end() -> None:
    graph = graph_of([placeholder(0, [8]), *(unary(var, var - 1) for var in range(1, MAX_DEPTH + 1))], [MAX_DEPTH])
    function = read_graph(decomposed(graph))
    assert materialised(function, live_values(function)) == set(function.results)


def test_the_code_of_one_element_is_bounded_when_every_value_is_read_at_two_places() -> None:
    b = Builder("prefix_sums")
    total = b.input("float32", (1024,))
    for step in range(10):
        total = total + pad(shrink(total, [(0, 1024 - (1 << step))]), [(1 << step, 0)])
    found = bodies(output(b, total))
    sizes = [len(list(walk(stage.elements, kernel.nodes))) for kernel in found for stage in kernel.stages]
    assert max(sizes) <= 512


def test_values_that_no_result_needs_are_dropped() -> None:
    graph = graph_of([placeholder(0, [8]), unary(1, 0), unary(2, 0, "exp2")], [1])
    text = str(kernels(graph))
    assert "exp2" not in text
    assert "neg" in text


def test_a_result_that_is_an_argument_needs_no_kernel() -> None:
    check_ir(
        kernels(graph_of([placeholder(0, [8]), placeholder(1, [8])], [1, 0])),
        """
        // CHECK: func.func @graph
        // CHECK-NOT: call
        // CHECK: return %arg1, %arg0
        // CHECK-NOT: func.func
        """,
    )


def test_an_empty_value_is_storage_without_a_kernel() -> None:
    check_ir(
        kernels(graph_of([placeholder(0, [0, 4]), unary(1, 0)], [1])),
        """
        // CHECK-NOT: call
        // CHECK: %[[E:.*]] = "kiln.buffer"(){{.*}}size_in_elements = 0{{.*}}-> tensor<0x4xf32>
        // CHECK: return %[[E]]
        """,
    )


def test_a_table_stays_in_the_graph_and_a_scalar_moves_into_the_kernel() -> None:
    b = Builder("constants")
    x = b.input("float32", (3,))
    text = str(kernels(output(b, x * b.constant([1.0, 2.0, 3.0], "float32") + 5.0)))
    graph, kernel = (_function(text, name) for name in ("@graph", "@kernel_0"))
    assert "kiln.vconst" in graph
    assert "kiln.const_scalar" not in graph
    assert "kiln.const_scalar" in kernel
    assert "kiln.vconst" not in kernel


def _function(text: str, name: str) -> str:
    """The text of one function."""
    return next(
        part for part in re.split(r"(?=func\.func)", text) if f"func.func {name}" in part or f"private {name}" in part
    )


def test_a_gathered_value_is_read_where_it_is() -> None:
    b = Builder("gathered")
    x, indices = b.input("float32", (64, 8)), b.input("int32", (4, 8))
    assert [roots for _, roots in shape_of_kernels(output(b, gather(x + x, indices, 0)))] == [["gather"]]


def test_one_kernel_may_return_several_values() -> None:
    b = Builder("several")
    x = b.input("float32", (4, 8))
    y = x + x
    check_ir(
        kernels(output(b, y, -y, y)),
        """
        // CHECK: func.func @graph
        // CHECK-NEXT: %[[R:.*]]:2 = call @kernel_0(%arg0)
        // CHECK-NEXT: return %[[R]]#0, %[[R]]#1, %[[R]]#0
        """,
    )


def test_a_value_that_only_its_own_kernel_reads_is_not_returned() -> None:
    b = Builder("local")
    graph = output(b, softmax(b.input("float32", (32, 100)), -1))
    check_ir(kernels(graph), "// CHECK: func.func private @kernel_0(%arg0: tensor<32x100xf32>) -> tensor<32x100xf32>")


def test_every_kernel_comes_after_what_it_reads() -> None:
    nodes = [placeholder(0, [64, 64]), placeholder(1, [64, 64])]
    for var in range(2, 12):
        kind = {"node": "contiguous", "in_var": var - 1, "out_var": var, "dtype": "float32"}
        nodes.append(binop(var, var - 1, var - 2) if var % 3 else kind)
    module = kernels(graph_of(nodes, [11, 6]))
    known: set[object] = set()
    function = read_graph(module)
    for value in function.values:
        assert {operand for operand in value.operands if operand.kind != "argument"} <= known
        known.add(value)


def test_a_buffer_nobody_has_written_is_read_as_zeros() -> None:
    assert [roots for _, roots in shape_of_kernels(graph_of([buffer(0, 4), unary(1, 0)], [1]))] == [["unary"]]


def test_a_module_without_the_graph_function_is_refused() -> None:
    with ir.Context(), ir.Location.unknown(), pytest.raises(KeyError, match="no function @graph"):
        form_kernels(ir.Module.create())


def test_a_row_layout_is_the_strides_of_the_leading_dimensions() -> None:
    n = expr.symbol("n")
    assert row_layout((4, n, 5), (4,)) == (5 * n, (5 * n,))
    assert row_layout((4, 1, n, 5), (4, n)) == (5, (5 * n, 5))
    assert row_layout((4, n), (4, n)) == (1, (n, 1))
    assert row_layout((4, n), (n,)) == (0, None)

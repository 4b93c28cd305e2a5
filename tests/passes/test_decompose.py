"""Decompositions, as the IR that they leave."""

from __future__ import annotations

from typing import Any

import pytest

from tensorkiln.build import Builder, Tensor, cat, scatter, where, zeros
from tensorkiln.graph import Graph
from tests.dialect.wire import assign, buffer, graph_of, placeholder
from tests.filecheck import check_ir
from tests.passes.modules import decomposed, kiln, output


def contract(left: list[Any], right: list[Any], pairs: list[list[int]], dtype: str = "float32") -> Graph:
    node = {"node": "contract", "in_vars": [0, 1], "contraction_axes": pairs, "out_var": 2, "dtype": dtype}
    return graph_of([placeholder(0, left, dtype), placeholder(1, right, dtype), node], [2], bounds={"n": (1, 64)})


def test_a_contract_is_a_summed_product_of_expanded_operands() -> None:
    check_ir(
        decomposed(contract([3, 4], [4, 5], [[1, 0]])),
        """
        // CHECK-NOT: kiln.contract
        // CHECK: %[[L:.*]] = "kiln.permute"(%arg0) {{.*}}axes_permutation = array<i64: 0, 1>
        // CHECK: %[[R:.*]] = "kiln.permute"(%arg1) {{.*}}axes_permutation = array<i64: 1, 0>
        // CHECK: %[[WL:.*]] = "kiln.reshape"(%[[L]]) {{.*}}-> tensor<3x1x4xf32>
        // CHECK: %[[WR:.*]] = "kiln.reshape"(%[[R]]) {{.*}}-> tensor<1x5x4xf32>
        // CHECK: %[[EL:.*]] = "kiln.expand"(%[[WL]]) {{.*}}-> tensor<3x5x4xf32>
        // CHECK: %[[ER:.*]] = "kiln.expand"(%[[WR]]) {{.*}}-> tensor<3x5x4xf32>
        // CHECK: %[[P:.*]] = "kiln.binop"(%[[EL]], %[[ER]]) {{.*}}op = "mul"
        // CHECK: %[[S:.*]] = "kiln.reduce_axis"(%[[P]]) {axes = array<i64: 2>, reduce_op_kind = "sum"}
        // CHECK-SAME: -> tensor<3x5xf32>
        // CHECK: return %[[S]]
        """,
    )


def test_a_contract_of_no_axes_is_an_outer_product() -> None:
    check_ir(
        decomposed(contract([3], [5], [])),
        """
        // CHECK-NOT: kiln.reduce_axis
        // CHECK: %[[P:.*]] = "kiln.binop"{{.*}}op = "mul"{{.*}} -> tensor<3x5xf32>
        // CHECK: return %[[P]]
        """,
    )


def test_a_contract_over_two_axes_sums_over_both_and_keeps_symbols() -> None:
    check_ir(
        decomposed(contract(["n", 4, 6], [6, "n", 2], [[0, 1], [2, 0]])),
        """
        // CHECK: "kiln.permute"(%arg0) {{.*}}axes_permutation = array<i64: 1, 0, 2>
        // CHECK: "kiln.permute"(%arg1) {{.*}}axes_permutation = array<i64: 2, 1, 0>
        // CHECK: "kiln.reduce_axis"{{.*}}axes = array<i64: 2, 3>
        // CHECK-SAME: tensor<4x2x?x6xf32, ["4", "2", "n", "6"]>{{.*}} -> tensor<4x2xf32>
        """,
    )


def test_wmma_computes_in_the_dtype_of_the_accumulator() -> None:
    node = {
        "node": "wmma",
        "a_var": 0,
        "b_var": 1,
        "c_var": 2,
        "m": 4,
        "n": 5,
        "k": 6,
        "out_var": 3,
        "dtype": "float32",
    }
    places = [placeholder(0, [4, 6], "float16"), placeholder(1, [6, 5], "float16"), placeholder(2, [4, 5])]
    check_ir(
        decomposed(graph_of([*places, node], [3])),
        """
        // CHECK-NOT: kiln.wmma
        // CHECK-DAG: "kiln.cast"(%arg0) {{.*}} -> tensor<4x6xf32>
        // CHECK-DAG: "kiln.cast"(%arg1) {{.*}} -> tensor<6x5xf32>
        // CHECK: %[[S:.*]] = "kiln.reduce_axis"{{.*}}reduce_op_kind = "sum"{{.*}} -> tensor<4x5xf32>
        // CHECK: %[[O:.*]] = "kiln.binop"(%[[S]], %arg2) {{.*}}op = "add"
        // CHECK: return %[[O]]
        """,
    )


@pytest.mark.parametrize(("dtype", "text"), [("float16", "f16"), ("bfloat16", "bf16")])
@pytest.mark.parametrize("kind", ["sum", "prod", "max"])
def test_a_narrow_reduction_is_taken_in_float32_and_rounded_once(dtype: str, text: str, kind: str) -> None:
    reduced = {"reduce_op_kind": kind, "axes": [1], "in_var": 0, "out_var": 1, "dtype": dtype}
    graph = graph_of([placeholder(0, [4, 8], dtype), {"node": "reduce_axis", **reduced}], [1])
    check_ir(
        decomposed(graph),
        f"""
        // CHECK: %[[W:.*]] = "kiln.cast"(%arg0) {{{{.*}}}} -> tensor<4x8xf32>
        // CHECK: %[[S:.*]] = "kiln.reduce_axis"(%[[W]]) {{{{.*}}}}reduce_op_kind = "{kind}"
        // CHECK: %[[N:.*]] = "kiln.cast"(%[[S]]) {{{{.*}}}}x{text}>
        // CHECK: return %[[N]]
        """,
    )


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", "max"), ("float32", "sum"), ("int8", "sum"), ("float64", "prod")]
)
def test_other_reductions_stay_in_their_dtype(dtype: str, kind: str) -> None:
    node = {"node": "reduce_axis", "reduce_op_kind": kind, "axes": [0], "in_var": 0, "out_var": 1, "dtype": dtype}
    graph = graph_of([placeholder(0, [8], dtype), node], [1])
    assert str(decomposed(graph)) == str(kiln(graph))


@pytest.mark.parametrize("shape", [[3, 8], ["n", 8]])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("kind", ["sum", "prod", "max"])
def test_a_reduction_over_no_axes_is_its_operand(shape: list[Any], dtype: str, kind: str) -> None:
    node = {"node": "reduce_axis", "reduce_op_kind": kind, "axes": [], "in_var": 0, "out_var": 1, "dtype": dtype}
    graph = graph_of([placeholder(0, shape, dtype), node], [1], bounds={"n": (1, 64)})
    check_ir(
        decomposed(graph),
        """
        // CHECK: func.func @graph(
        // CHECK-NEXT: return %arg0
        """,
    )


def test_a_bool_argument_is_stored_once_for_what_would_pass_on_its_bytes() -> None:
    sort = {"node": "custom", "op_name": "sort", "in_vars": [0], "out_var": 1, "dtype": "bool"}
    attributes = {"attributes": [{"name": "axis", "kind": "int", "value": 0}]}
    negated = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 2, "dtype": "bool"}
    graph = graph_of([placeholder(0, [8], "bool"), {**sort, **attributes}, negated], [0, 1, 2])
    check_ir(
        decomposed(graph),
        """
        // CHECK: %[[P:.*]] = "kiln.contiguous"(%arg0)
        // CHECK-NEXT: %[[S:.*]] = "kiln.custom"(%[[P]])
        // CHECK-NEXT: %[[N:.*]] = "kiln.unary"(%arg0)
        // CHECK-NEXT: return %[[P]], %[[S]], %[[N]]
        """,
    )


def multi(axis: int | None, mask: list[bool]) -> Graph:
    node = {
        "node": "multi",
        "device_vars": [0, 1, 2],
        "axis": axis,
        "real_mask": mask,
        "out_var": 3,
        "dtype": "float32",
    }
    return graph_of([*(placeholder(var, [2, 3]) for var in range(3)), node], [3])


def test_a_replicated_multi_is_its_first_shard() -> None:
    check_ir(
        decomposed(multi(None, [True, True, True])),
        """
        // CHECK: func.func @graph(
        // CHECK-NOT: kiln.multi
        // CHECK: return %arg0
        """,
    )


def test_a_sharded_multi_joins_its_real_shards() -> None:
    check_ir(
        decomposed(multi(1, [True, False, True])),
        """
        // CHECK: %[[C:.*]] = "kiln.cat"(%arg0, %arg2) {{.*}}axis = 1{{.*}} -> tensor<2x6xf32>
        // CHECK: return %[[C]]
        """,
    )


def test_a_multi_of_one_real_shard_is_that_shard() -> None:
    check_ir(
        decomposed(multi(0, [False, True, False])),
        """
        // CHECK-NOT: kiln.cat
        // CHECK: return %arg1
        """,
    )


def buffer_view(source: str, wanted: str, size: int, offset: int) -> Graph:
    view = {"node": "buffer_view", "buffer_var": 0, "offset": offset, "size": size, "dtype": wanted, "out_var": 1}
    return graph_of([buffer(0, 16, source), view], [1], inputs=[0])


def test_a_buffer_view_of_a_narrower_dtype_reinterprets_the_elements_that_hold_it() -> None:
    check_ir(
        decomposed(buffer_view("float32", "int8", 6, 3)),
        """
        // CHECK-NOT: kiln.buffer_view
        // CHECK: %[[W:.*]] = "kiln.shrink"(%arg0) {{.*}}[3, 5]{{.*}} -> tensor<2xf32>
        // CHECK: %[[B:.*]] = "kiln.bitcast"(%[[W]]) {{.*}} -> tensor<8xi8>
        // CHECK: %[[S:.*]] = "kiln.shrink"(%[[B]]) {{.*}}[0, 6]{{.*}} -> tensor<6xi8>
        // CHECK: return %[[S]]
        """,
    )


def test_a_buffer_view_of_a_wider_dtype_joins_elements() -> None:
    check_ir(
        decomposed(buffer_view("int8", "int32", 2, 4)),
        """
        // CHECK: %[[W:.*]] = "kiln.shrink"(%arg0) {{.*}}[4, 12]{{.*}} -> tensor<8xi8>
        // CHECK: %[[B:.*]] = "kiln.bitcast"(%[[W]]) {{.*}} -> tensor<2xi32>
        // CHECK: return %[[B]]
        """,
    )


def test_a_buffer_view_of_the_same_dtype_stays() -> None:
    check_ir(
        decomposed(buffer_view("float32", "float32", 6, 3)),
        """
        // CHECK: %[[V:.*]] = "kiln.buffer_view"(%arg0)
        // CHECK: return %[[V]]
        """,
    )


def test_the_new_ops_stand_at_the_node_that_they_replace() -> None:
    text = decomposed(contract([3, 4], [4, 5], [[1, 0]])).operation.get_asm(enable_debug_info=True)
    check_ir(
        text,
        """
        // CHECK: "kiln.reduce_axis"{{.*}} loc(#[[LOC:.*]])
        // CHECK: #[[LOC]] = loc("/nodes/2")
        """,
    )


def test_a_graph_without_any_such_op_is_left_alone() -> None:
    b = Builder("plain")
    x = b.input("float32", (4, 4))
    graph = output(b, (x + x).reshape(16))
    assert str(decomposed(graph)) == str(kiln(graph))


@pytest.mark.parametrize(("span", "kept"), [(None, False), ([0, 4], False), ([0, 3], True), ([1, 4], True)])
def test_an_assignment_of_everything_is_its_source(span: list[int] | None, kept: bool) -> None:
    size = 4 if span is None else span[1] - span[0]
    module = decomposed(graph_of([placeholder(0, [4]), placeholder(1, [size]), assign(2, 0, (1, span))], [2]))
    assert ("kiln.assign" in str(module)) == kept
    if not kept:
        check_ir(module, "// CHECK: return %arg1 : tensor<4xf32>")


def test_a_cat_has_no_empty_parts() -> None:
    b = Builder("cat")
    x, y, none = b.input("float32", (3, 4)), b.input("float32", (2, 4)), b.input("float32", (0, 4))
    check_ir(decomposed(output(b, cat([none, x, none, y], 0))), '// CHECK: kiln.cat"(%arg0, %arg1) {axis = 0 : i64')
    b = Builder("cat")
    x, none = b.input("float32", (3, 4)), b.input("float32", (0, 4))
    check_ir(decomposed(output(b, cat([none, x, none], 0), cat([none, none], 0))), "// CHECK: return %arg0, %arg1")


def rows(b: Builder, indices: Tensor, updates: Tensor, **fields: Any) -> Graph:
    return output(b, scatter(indices, updates, 0, (9, *updates.shape[1:]), **fields))


def test_an_expanded_index_is_read_once_for_a_row() -> None:
    b = Builder("rows")
    index, updates = b.input("int64", (5, 1)), b.input("float32", (5, 8))
    check_ir(
        decomposed(rows(b, index.expand(5, 8), updates, reduction="add")),
        """
        // CHECK: %[[S:.*]] = "kiln.scatter"(%arg0, %arg1) {axis = 0 : i64, reduction = "add"}
        // CHECK-SAME: (tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
        // CHECK: return %[[S]]
        """,
    )


def test_an_index_computed_from_expanded_ones_is_read_at_the_first_element_and_the_last_axes_are_joined() -> None:
    b = Builder("rows")
    index, updates = b.input("int64", (5,)), b.input("float32", (5, 4, 2))
    wide = index.reshape(5, 1, 1).expand(5, 4, 2)
    check_ir(
        decomposed(rows(b, where(wide < 0, wide + 9, wide), updates)),
        """
        // CHECK: %[[I:.*]] = "kiln.shrink"({{.*}} -> tensor<5x1x1xi64>
        // CHECK: "kiln.scatter"({{.*}}(tensor<5x1xi64>, tensor<5x8xf32>) -> tensor<9x8xf32>
        // CHECK: "kiln.reshape"({{.*}} -> tensor<9x4x2xf32>
        """,
    )


def test_an_index_of_its_own_for_each_element_stays() -> None:
    b = Builder("own")
    index, updates = b.input("int64", (5, 8)), b.input("float32", (5, 8))
    check_ir(
        decomposed(rows(b, index, updates)),
        """
        // CHECK: "kiln.scatter"(%arg0, %arg1) {{.*}}(tensor<5x8xi64>, tensor<5x8xf32>)
        """,
    )


def test_zeros_are_no_initial_values_but_negative_zeros_are() -> None:
    for value, operands in ((0.0, "%arg0, %arg1)"), (-0.0, "%arg0, %arg1, %{{.*}})")):
        b = Builder("zeros")
        index, updates = b.input("int64", (5, 1)), b.input("float32", (5, 1))
        into = zeros(b, (9, 1)) if operands.endswith("%arg1)") else b.constant([[value]] * 9, "float32")
        check_ir(
            decomposed(rows(b, index, updates, into=into, reduction="add")),
            f"""
            // CHECK: "kiln.scatter"({operands} {{{{.*}}}}
            """,
        )


@pytest.mark.parametrize(("kind", "dtype"), [("add", "f32"), ("mul", "f32"), ("max", "bf16"), ("none", "bf16")])
def test_updates_of_16_bit_floats_are_accumulated_in_float32(kind: str, dtype: str) -> None:
    b = Builder("narrow")
    index, updates = b.input("int64", (5, 1)), b.input("bfloat16", (5, 1))
    check_ir(
        decomposed(rows(b, index, updates, reduction=kind)),
        f"""
        // CHECK: "kiln.scatter"({{{{.*}}}} -> tensor<9x1x{dtype}>
        """,
    )

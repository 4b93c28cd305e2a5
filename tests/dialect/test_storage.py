from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from dialect.mlir import ir
from dialect.verify import verify
from tensorkiln import reference
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.graph import Graph
from tests.dialect.module_to_graph import module_to_graph
from tests.dialect.wire import Node, assign, binop, buffer, buffer_view, graph_of, inputs_of, placeholder, unary
from tests.filecheck import check_ir


def assert_same_meaning(graph: Graph, context: ir.Context, **symbols: int) -> None:
    module = from_graph(graph, context)
    verify(module, "from-graph")
    arrays = inputs_of(graph, symbols)
    expected = reference.evaluate(graph, *arrays, **symbols)
    actual = reference.evaluate(module_to_graph(module), *arrays, **symbols)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_buffer_that_another_node_defines_has_no_op(context: ir.Context) -> None:
    nodes = [placeholder(0, [4]), buffer(1, 4), unary(1, 0), buffer(2, 4), binop(2, 1, 0)]
    graph = graph_of(nodes, [2])
    module = from_graph(graph, context)
    check_ir(
        module,
        """
        // CHECK-NOT: kiln.buffer
        // CHECK:     %[[NEGATED:.*]] = "kiln.unary"(%arg0) {kiln.node = 2 : i64
        // CHECK-NOT: kiln.buffer
        // CHECK:     %[[SUM:.*]] = "kiln.binop"(%[[NEGATED]], %arg0) {kiln.node = 4 : i64
        // CHECK:     return %[[SUM]]
        """,
    )
    assert_same_meaning(graph, context)


def test_a_buffer_that_nothing_writes_has_an_op_at_its_node(context: ir.Context) -> None:
    module = from_graph(graph_of([buffer(0, 4), placeholder(1, [4]), binop(2, 0, 1)], [2]), context)
    check_ir(
        module.operation.get_asm(enable_debug_info=True),
        """
        // CHECK: %[[BUFFER:.*]] = "kiln.buffer"() {device = "CPU", kiln.node = 0 : i64{{.*}} loc(#[[AT:.*]])
        // CHECK: "kiln.binop"(%[[BUFFER]], %arg0)
        // CHECK: #[[AT]] = loc("/nodes/0")
        """,
    )


def test_a_buffer_that_is_an_input_is_its_argument(context: ir.Context) -> None:
    module = from_graph(graph_of([buffer(0, 4), unary(1, 0)], [1], inputs=[0]), context)
    check_ir(module, '// CHECK: func.func @graph(%arg0: tensor<4xf32>)\n// CHECK-NEXT: "kiln.unary"(%arg0)')


def test_reads_after_an_assign_see_the_new_value_and_reads_before_it_the_old_one(context: ir.Context) -> None:
    nodes = [placeholder(0, [4]), placeholder(1, [4]), unary(2, 0), assign(3, 0, (1, None)), unary(4, 0), unary(5, 3)]
    graph = graph_of(nodes, [2, 4, 5, 0])
    check_ir(
        from_graph(graph, context),
        """
        // CHECK: %[[OLD:.*]] = "kiln.unary"(%arg0)
        // CHECK: %[[NEW:.*]] = "kiln.assign"(%arg0, %arg1) {kiln.node = 3 : i64, range}
        // CHECK: %[[READ:.*]] = "kiln.unary"(%[[NEW]])
        // CHECK: %[[OUT:.*]] = "kiln.unary"(%[[NEW]])
        // CHECK: return %[[OLD]], %[[READ]], %[[OUT]], %[[NEW]]
        """,
    )
    assert_same_meaning(graph, context)


def test_the_out_var_of_an_assign_keeps_its_value_when_the_target_is_assigned_again(context: ir.Context) -> None:
    nodes = [placeholder(0, [4]), placeholder(1, [4]), assign(2, 0, (1, None)), assign(3, 0, (2, [0, 4]), (1, None))]
    assert_same_meaning(graph_of([*nodes, unary(4, 2)], [4, 2, 3, 0]), context)


def test_an_assign_to_its_own_out_var_updates_in_place(context: ir.Context) -> None:
    nodes = [placeholder(0, [4]), placeholder(1, [2]), buffer(2, 4), buffer_view(3, 2, 1, 2), unary(4, 3)]
    graph = graph_of([*nodes, assign(2, 2, (0, None), (1, [2, 4])), unary(5, 3)], [2, 4, 5])
    assert_same_meaning(graph, context)


def test_updates_are_applied_in_order_and_an_update_may_read_what_an_earlier_one_wrote(context: ir.Context) -> None:
    nodes = [placeholder(0, [6]), placeholder(1, [3]), buffer_view(2, 0, 1, 3)]
    graph = graph_of([*nodes, assign(3, 0, (1, [0, 3]), (2, [3, 6]))], [0, 3, 2])
    assert_same_meaning(graph, context)


def test_a_view_is_taken_again_when_its_buffer_was_written(context: ir.Context) -> None:
    nodes = [
        placeholder(0, [8]),
        placeholder(1, [8]),
        buffer_view(2, 0, 2, 4),
        unary(3, 2),
        assign(4, 0, (1, None)),
        unary(5, 2),
    ]
    graph = graph_of(nodes, [3, 5])
    check_ir(
        from_graph(graph, context),
        """
        // CHECK: %[[BEFORE:.*]] = "kiln.buffer_view"(%arg0) {kiln.node = 2
        // CHECK: "kiln.unary"(%[[BEFORE]])
        // CHECK: %[[WRITTEN:.*]] = "kiln.assign"(%arg0, %arg1)
        // CHECK: %[[AFTER:.*]] = "kiln.buffer_view"(%[[WRITTEN]]) {kiln.node = 2
        // CHECK: "kiln.unary"(%[[AFTER]])
        """,
    )
    assert_same_meaning(graph, context)


def test_an_assign_to_a_view_writes_through_to_the_buffer_and_its_other_views(context: ir.Context) -> None:
    nodes = [
        placeholder(0, [2, 4]),
        placeholder(1, [4]),
        buffer_view(2, 0, 2, 4),
        buffer_view(3, 2, 1, 2),
        buffer_view(4, 0, 0, 3),
        assign(5, 2, (1, None)),
    ]
    graph = graph_of(nodes, [0, 2, 3, 4, 5])
    check_ir(
        from_graph(graph, context),
        """
        // CHECK: %[[VIEW:.*]] = "kiln.buffer_view"(%arg0)
        // CHECK: %[[NEW:.*]] = "kiln.assign"(%[[VIEW]], %arg1)
        // CHECK: %[[FLAT:.*]] = "kiln.reshape"(%arg0) {{.*}} -> tensor<8xf32>
        // CHECK: %[[FRONT:.*]] = "kiln.shrink"(%[[FLAT]]) {{.*}} -> tensor<2xf32>
        // CHECK: %[[BACK:.*]] = "kiln.shrink"(%[[FLAT]]) {{.*}} -> tensor<2xf32>
        // CHECK: %[[SPLICED:.*]] = "kiln.cat"(%[[FRONT]], %[[NEW]], %[[BACK]]) {axis = 0
        // CHECK: "kiln.reshape"(%[[SPLICED]]) {{.*}} -> tensor<2x4xf32>
        """,
    )
    assert_same_meaning(graph, context)


def test_bytes_are_spliced_when_a_view_has_another_dtype(context: ir.Context) -> None:
    nodes = [placeholder(0, [2, 4]), placeholder(1, [3], "int16"), buffer_view(2, 0, 3, 3, "int16")]
    assert_same_meaning(graph_of([*nodes, assign(3, 2, (1, None), dtype="int16")], [0, 2]), context)


def test_a_view_of_symbolic_place_and_size_is_written_through(context: ir.Context) -> None:
    nodes = [placeholder(0, [40]), placeholder(1, ["n"]), buffer_view(2, 0, "n", "n"), assign(3, 2, (1, None))]
    graph = graph_of([*nodes, unary(4, 0)], [0, 4], bounds={"n": (1, 20)})
    assert_same_meaning(graph, context, n=7)


def test_an_assign_through_a_view_that_reads_bool_as_another_dtype_is_refused(context: ir.Context) -> None:
    nodes = [placeholder(0, [4], "uint8"), placeholder(1, [4], "bool"), buffer_view(2, 0, 0, 4, "bool")]
    graph = graph_of([*nodes, assign(3, 2, (1, None), dtype="bool")], [0])
    with pytest.raises(UnsupportedGraphError, match="bool view of a uint8 buffer") as caught:
        from_graph(graph, context)
    assert caught.value.pointers == ("/nodes/3", "/nodes/2")


def test_a_long_chain_of_views_needs_no_deep_recursion(context: ir.Context) -> None:
    views = [buffer_view(var + 1, var, 0, 4) for var in range(3000)]
    graph = graph_of([placeholder(0, [4]), placeholder(4000, [4]), *views, assign(3999, 3000, (4000, None))], [0])
    verify(from_graph(graph, context), "from-graph")


def test_a_kernel_may_wrap_an_assign_or_a_view(context: ir.Context) -> None:
    def kernel(ast: Node, inputs: Sequence[int]) -> Node:
        out, dtype = ast["out_var"], ast["dtype"]
        metadata = {"name": "k", "local_dims": 0, "upcasted": 0, "dont_use_locals": False}
        wrapper = {"node": "kernel", "ast": ast, "input_vars": list(inputs), "output_vars": [out]}
        return {**wrapper, "metadata": metadata, "out_var": out, "dtype": dtype}

    nodes = [
        placeholder(0, [6]),
        placeholder(1, [2]),
        kernel(buffer_view(2, 0, 3, 2), [0]),
        kernel(assign(3, 2, (1, None)), [2, 1]),
        kernel(kernel(unary(4, 2), [2]), [2]),
    ]
    assert_same_meaning(graph_of(nodes, [0, 2, 3, 4]), context)


WIDTHS = {"float32": 4, "int16": 2, "uint8": 1}


@st.composite
def storage_programs(draw: st.DrawFn) -> Graph:
    """Views of views in any dtype, and assignments to any of them, in a random order; all vars are read in the end."""
    nodes: list[Node] = [
        placeholder(0, [12]),
        placeholder(1, [3, 4]),
        placeholder(2, [5], "int16"),
        placeholder(3, [7], "uint8"),
    ]
    sizes = {0: 12, 1: 12, 2: 5, 3: 7}
    dtypes = {0: "float32", 1: "float32", 2: "int16", 3: "uint8"}
    writable = [0, 1, 2, 3]
    for var in range(4, 4 + draw(st.integers(1, 12))):
        chosen = draw(st.sampled_from(writable))
        sizes[var], dtypes[var] = sizes[chosen], dtypes[chosen]
        match draw(st.sampled_from(["view", "assign", "read"])):
            case "view":
                offset = draw(st.integers(0, sizes[chosen]))
                dtypes[var] = draw(st.sampled_from(list(WIDTHS)))
                room = (sizes[chosen] - offset) * WIDTHS[dtypes[chosen]] // WIDTHS[dtypes[var]]
                sizes[var] = draw(st.integers(0, room))
                nodes.append(buffer_view(var, chosen, offset, sizes[var], dtypes[var]))
                writable.append(var)
            case "read":
                nodes.append(unary(var, chosen, dtype=dtypes[var]))
            case _:
                fitting = [
                    other
                    for other in sizes
                    if other != var and dtypes[other] == dtypes[chosen] and sizes[other] <= sizes[chosen]
                ]
                sources = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
                starts = [draw(st.integers(0, sizes[chosen] - sizes[source])) for source in sources]
                spans = [[start, start + sizes[source]] for start, source in zip(starts, sources, strict=True)]
                nodes.append(assign(var, chosen, *zip(sources, spans, strict=True), dtype=dtypes[var]))
    return graph_of(nodes, sorted(sizes))


@given(storage_programs())
@settings(max_examples=60, deadline=None)
def test_any_program_of_views_and_assignments_keeps_its_meaning(graph: Graph) -> None:
    assert_same_meaning(graph, new_context())

from __future__ import annotations

import pytest

from dialect.from_graph import from_graph
from dialect.kiln import CatOp, SinkOp, WhileOp
from dialect.mlir import ir
from dialect.module import graph_function, kiln_ops, node_index, symbols
from dialect.operation import MAX_RUNS
from dialect.verify import verify
from tensorkiln import reference
from tensorkiln.build import Builder, while_loop
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.nodes import SymVar
from tests.dialect.module_to_graph import module_to_graph
from tests.dialect.wire import binop, graph_of, inputs_of, placeholder, unary
from tests.filecheck import check_ir


def test_the_function_takes_the_inputs_and_returns_the_outputs_in_order(context: ir.Context) -> None:
    nodes = [placeholder(3, ["n"]), placeholder(1, [], "int8"), unary(2, 3), placeholder(5, [4], "bool")]
    graph = graph_of(nodes, [2, 1, 2, 3], inputs=[1, 5, 3], bounds={"n": (2, 9), "m": (-1, 1)})
    module = from_graph(graph, context)
    check_ir(
        module,
        """
        // CHECK:      func.func @graph(%arg0: tensor<i8>, %arg1: tensor<4xi1>, %arg2: tensor<?xf32, ["n"]>)
        // CHECK-SAME: -> (tensor<?xf32, ["n"]>, tensor<i8>, tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>)
        // CHECK-SAME: kiln.symbols = [{max_val = 9 : i64, min_val = 2 : i64, name = "n"}
        // CHECK:      %[[OUT:.*]] = "kiln.unary"(%arg2)
        // CHECK-NEXT: return %[[OUT]], %arg0, %[[OUT]], %arg2
        """,
    )
    assert symbols(module) == (SymVar(name="n", min_val=2, max_val=9), SymVar(name="m", min_val=-1, max_val=1))


def test_every_op_and_argument_stands_at_its_node(context: ir.Context) -> None:
    module = from_graph(graph_of([placeholder(0, [4]), unary(1, 0), binop(2, 1, 0)], [2]), context)
    assert [op.location.name_str for op in kiln_ops(module.operation)] == ["/nodes/1", "/nodes/2"]
    assert [node_index(op) for op in kiln_ops(module.operation)] == [1, 2]
    (block,) = graph_function(module).regions[0].blocks
    assert str(block.arguments[0].location) == 'loc("/nodes/0")'


def test_a_context_of_ones_own_is_made_when_none_is_given() -> None:
    module = from_graph(graph_of([placeholder(0, [4]), unary(1, 0)], [1]))
    verify(module, "from-graph")


def test_a_context_without_the_dialect_gets_it() -> None:
    module = from_graph(graph_of([placeholder(0, [4]), unary(1, 0)], [1]), ir.Context())
    verify(module, "from-graph")


def test_a_sink_of_too_many_types_becomes_several(context: ir.Context) -> None:
    count = MAX_RUNS + 3
    places = [placeholder(var, [var + 1]) for var in range(count)]
    module = from_graph(
        graph_of([*places, {"node": "sink", "deps": list(range(count)), "dtype": "unit"}], [0]), context
    )
    sinks = [op for op in kiln_ops(module.operation) if isinstance(op, SinkOp)]
    assert [len(sink.values) for sink in sinks] == [MAX_RUNS, 3]
    verify(module, "from-graph")


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("kind", ["cat", "multi"])
def test_more_parts_than_one_op_takes_are_joined_in_steps(kind: str, axis: int, context: ir.Context) -> None:
    count = MAX_RUNS * 2 + 5
    extents = [1 + var % 3 for var in range(count)]
    shapes = [[extent, 2] if axis == 0 else [2, extent] for extent in extents]
    places = [placeholder(var, shape) for var, shape in enumerate(shapes)]
    if kind == "cat":
        node = {"node": "cat", "in_vars": list(range(count)), "axis": axis}
    else:
        mask = [var % 5 != 1 for var in range(count)]
        node = {"node": "multi", "device_vars": list(range(count)), "axis": axis % 2, "real_mask": mask}
    graph = graph_of([*places, {**node, "out_var": 99, "dtype": "float32"}], [99])
    module = from_graph(graph, context)
    verify(module, "from-graph")
    assert len([op for op in kiln_ops(module.operation) if isinstance(op, CatOp)]) > 1
    arrays = inputs_of(graph, {})
    (expected,), (actual,) = reference.evaluate(graph, *arrays), reference.evaluate(module_to_graph(module), *arrays)
    assert (actual == expected).all()


def test_many_parts_of_one_type_are_one_run(context: ir.Context) -> None:
    places = [placeholder(0, [2, 1]), placeholder(1, [2, 1])]
    node = {"node": "cat", "in_vars": [0, 1] * 100, "axis": 1, "out_var": 9, "dtype": "float32"}
    module = from_graph(graph_of([*places, node], [9]), context)
    check_ir(module, "// CHECK: operandSegmentSizes = array<i32: 200, 0,")


def test_a_replicated_multi_of_too_many_types_keeps_its_first_value(context: ir.Context) -> None:
    count = MAX_RUNS + 1
    names = [f"s{var}" for var in range(count)]
    places = [placeholder(var, [name]) for var, name in enumerate(names)]
    node = {"node": "multi", "device_vars": list(range(count)), "axis": None, "real_mask": [True] * count}
    graph = graph_of(
        [*places, {**node, "out_var": 99, "dtype": "float32"}], [99], bounds={name: (1, 8) for name in names}
    )
    check_ir(from_graph(graph, context), '// CHECK: "kiln.multi"(%arg0) {axis, kiln.node')


def test_values_of_more_types_than_a_vectorize_takes_are_refused_by_name(context: ir.Context) -> None:
    count = MAX_RUNS + 1
    names = [f"s{var}" for var in range(count)]
    places = [placeholder(var, [name]) for var, name in enumerate(names)]
    node = {"node": "vectorize", "in_vars": list(range(count)), "out_var": 99, "dtype": "float32"}
    graph = graph_of([*places, node], [99], bounds={name: (1, 8) for name in names})
    with pytest.raises(UnsupportedGraphError, match="at most 15 times") as caught:
        from_graph(graph, context)
    assert caught.value.pointers == (f"/nodes/{count}/in_vars",)


def test_a_kernel_of_a_sink_has_one_op_for_each_output(context: ir.Context) -> None:
    metadata = {"name": "k", "local_dims": 0, "upcasted": 0, "dont_use_locals": False}
    kernel = {
        "node": "kernel",
        "ast": {"node": "sink", "deps": [1, 0], "dtype": "unit"},
        "input_vars": [1, 0],
        "output_vars": [5, 6],
        "metadata": metadata,
        "out_var": 5,
        "dtype": "int8",
    }
    graph = graph_of([placeholder(0, [4]), placeholder(1, [2], "int8"), kernel], [6, 5])
    check_ir(
        from_graph(graph, context),
        """
        // CHECK:     %[[FIRST:.*]] = "kiln.kernel"(%arg1)
        // CHECK:     %[[SECOND:.*]] = "kiln.kernel"(%arg0)
        // CHECK-NOT: kiln.sink
        // CHECK:     return %[[SECOND]], %[[FIRST]]
        """,
    )


def test_the_graphs_of_a_loop_are_read_once(context: ir.Context) -> None:
    b = Builder("counting")
    b.output(*while_loop(lambda turn: turn < 3, lambda turn: [turn + 1], [b.constant(0)]))
    module = from_graph(b.graph(), context)
    (loop,) = [op for op in kiln_ops(module.operation) if isinstance(op, WhileOp)]
    assert loop.body is loop.body
    assert loop.condition is loop.condition != loop.body

from __future__ import annotations

import pytest

from dialect.diagnostics import MAX_TEXT, to_error
from dialect.from_graph import from_graph
from dialect.locations import node_indices, node_location
from dialect.mlir import PassManager, ir
from dialect.module import kiln_ops
from tensorkiln.errors import DiagnosticError, error_from_problem
from tests.dialect.wire import graph_of, placeholder, unary


def failure(module: ir.Module) -> ir.MLIRError:
    with pytest.raises(ir.MLIRError) as caught:
        module.operation.verify()
    return caught.value


def test_an_error_of_mlir_names_the_users_node_and_the_stage(context: ir.Context) -> None:
    module = from_graph(graph_of([placeholder(0, [4]), unary(1, 0), unary(2, 1)], [2]), context)
    *_, last = kiln_ops(module.operation)
    del last.attributes["op"]
    error = to_error(failure(module), "decompose")
    assert isinstance(error, DiagnosticError)
    assert error.code == "compile.diagnostic"
    assert error.pointers == ("/nodes/2",)
    assert error.details["stage"] == "decompose"
    assert "stage decompose: 'kiln.unary' op attribute \"op\" is expected" in error.message
    assert isinstance(error_from_problem(error.to_problem()), DiagnosticError)


def test_an_error_of_a_pass_names_the_node_too(context: ir.Context) -> None:
    module = from_graph(graph_of([placeholder(0, [4]), unary(1, 0)], [1]), context)

    def refuse(operation: ir.Operation, _pass: object) -> None:
        (op,) = kiln_ops(operation)
        op.attributes["op"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(8), 0)

    manager = PassManager()
    manager.add(refuse, "refuse")
    with pytest.raises(ir.MLIRError) as caught:
        manager.run(module.operation)
    assert to_error(caught.value, "refuse").pointers == ("/nodes/1",)


def test_a_text_of_the_parser_has_no_node(context: ir.Context) -> None:
    with pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse("func.func @graph( {")
    error = to_error(caught.value, "parse")
    assert error.pointers == ()
    assert "expected" in error.message


def test_a_long_diagnostic_is_cut(context: ir.Context) -> None:
    places = [placeholder(var, [var + 1]) for var in range(300)]
    module = from_graph(graph_of([*places, {"node": "sink", "deps": [*range(16)], "dtype": "unit"}], [0]), context)
    (sink,) = kiln_ops(module.operation)
    sink.attributes["long"] = ir.StringAttr.get("x" * (2 * MAX_TEXT))
    sink.attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1])
    error = to_error(failure(module), "test")
    assert all(len(text) <= MAX_TEXT + 1 for text in error.details["diagnostics"])
    assert any(text.endswith("…") for text in error.details["diagnostics"])


def test_a_fused_location_names_all_its_nodes(context: ir.Context) -> None:
    fused = ir.Location.fused([node_location(4), node_location(17), node_location(4)])
    assert node_indices(fused) == (4, 17)
    assert node_indices(ir.Location.name("inner", childLoc=fused)) == (4, 17)
    assert node_indices(ir.Location.unknown()) == ()

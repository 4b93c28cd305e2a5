from __future__ import annotations

import numpy as np
import pytest

from dialect.from_graph import from_graph
from dialect.kiln import OPS, CustomOp, KilnOp, VconstOp
from dialect.mlir import ir
from dialect.module import kiln_ops, node_index
from dialect.verify import verify
from tensorkiln import reference
from tensorkiln.nodes import NODE_KINDS, Custom
from tests.dialect.kinds import EXAMPLES, Example
from tests.dialect.module_to_graph import module_to_graph
from tests.dialect.wire import inputs_of
from tests.filecheck import check_ir

READ_ELSEWHERE = ("placeholder", "const_scalar", "vconst", "custom", "assign")
READ_HERE = [example for example in EXAMPLES if example.kind not in READ_ELSEWHERE]
EACH_KIND = pytest.mark.parametrize("example", EXAMPLES, ids=[example.kind for example in EXAMPLES])


def op_of(module: ir.Module, kind: str) -> KilnOp:
    """The last op of a kind. It does not keep the module alive: the caller has to."""
    return [op for op in kiln_ops(module.operation) if f"kiln.{kind}" == op.OPERATION_NAME][-1]


def test_there_is_an_op_and_an_example_for_each_of_the_45_kinds() -> None:
    assert set(OPS) == set(NODE_KINDS) == {example.kind for example in EXAMPLES}
    assert len(OPS) == 45
    assert all(op.__name__ == f"{NODE_KINDS[kind].__name__}Op" for kind, op in OPS.items())


@EACH_KIND
def test_a_node_becomes_the_op_of_its_name(example: Example, context: ir.Context) -> None:
    check_ir(from_graph(example.graph(), context), f"// CHECK: {example.check}")


@EACH_KIND
def test_printed_ops_parse_back_to_the_same_text(example: Example, context: ir.Context) -> None:
    module = from_graph(example.graph(), context)
    text = module.operation.get_asm(enable_debug_info=True)
    again = ir.Module.parse(text)
    assert again.operation.get_asm(enable_debug_info=True) == text
    verify(module, "from-graph")
    verify(again, "parse")


@EACH_KIND
def test_a_module_means_what_its_graph_means(example: Example, context: ir.Context) -> None:
    graph = example.graph()
    again = module_to_graph(from_graph(graph, context))
    symbols = {name: max(low, min(high, 5)) for name, (low, high) in graph.symbols.items()}
    arrays = inputs_of(graph, symbols)
    expected = reference.evaluate(graph, *arrays, **symbols)
    for actual, wanted in zip(reference.evaluate(again, *arrays, **symbols), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
        assert actual.dtype == wanted.dtype


@pytest.mark.parametrize("example", READ_HERE, ids=[example.kind for example in READ_HERE])
def test_an_op_reads_back_the_fields_of_its_node(example: Example, context: ir.Context) -> None:
    graph = example.graph()
    module = from_graph(graph, context)
    op, node = op_of(module, example.kind), graph.nodes[-1]
    assert type(op) is OPS[example.kind]
    assert node_index(op) == len(graph.nodes) - 1
    for member in op.fields:
        expected = getattr(node, member)
        assert getattr(op, member) == (1 if (example.kind, member) == ("cat", "axis") else expected)


def test_a_placeholder_is_its_argument_and_no_op(context: ir.Context) -> None:
    (example,) = (example for example in EXAMPLES if example.kind == "placeholder")
    assert list(kiln_ops(from_graph(example.graph(), context).operation)) == []


def test_attributes_of_a_custom_node_are_read_back_with_their_kinds(context: ir.Context) -> None:
    (example,) = (example for example in EXAMPLES if example.kind == "custom")
    graph = example.graph()
    module = from_graph(graph, context)
    op, node = op_of(module, "custom"), graph.nodes[-1]
    assert isinstance(op, CustomOp)
    assert isinstance(node, Custom)
    assert op.op_name == "sort"
    assert op.custom_attributes == node.attributes


def test_a_table_is_read_back_in_its_dtype_and_shape(context: ir.Context) -> None:
    (example,) = (example for example in EXAMPLES if example.kind == "vconst")
    module = from_graph(example.graph(), context)
    op = op_of(module, "vconst")
    assert isinstance(op, VconstOp)
    np.testing.assert_array_equal(op.array, np.array([[1, 0], [3, 2**64 - 1]], np.uint64))

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from dialect.from_graph import from_graph
from dialect.kiln import BinopOp, ConstScalarOp, IndexOp, NoopOp, PadOp, SinkOp, load, new_context
from dialect.mlir import PassManager, func, ir
from dialect.module import kiln_ops, node_index
from dialect.types import tensor_type, type_of
from dialect.verify import verify
from tensorkiln.dtypes import DType
from tensorkiln.expr import symbol
from tensorkiln.nodes import BinopKind
from tensorkiln.types import TensorType
from tests.dialect.wire import binop, graph_of, placeholder, unary
from tests.filecheck import check_ir

ROW = TensorType(DType.FLOAT32, (4,))


def empty_graph(*inputs: TensorType) -> tuple[ir.Module, ir.Block]:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("graph", ([tensor_type(tensor) for tensor in inputs], []))
    return module, function.add_entry_block()


def test_loading_twice_does_nothing(context: ir.Context) -> None:
    load(context)
    load(context)


def test_threads_may_load_and_read_graphs_at_once() -> None:
    graph = graph_of([placeholder(0, [4]), unary(1, 0)], [1])

    def text(_: int) -> str:
        return str(from_graph(graph))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(text, range(32)))) == 1


def test_a_context_goes_when_nobody_holds_it() -> None:
    gone = weakref.ref(new_context())
    gc.collect()
    assert gone() is None


def test_a_context_has_the_dialects_that_passes_build_and_no_other(context: ir.Context) -> None:
    assert all(context.is_dialect_loaded(name) for name in ("kiln", "arith", "llvm", "memref", "nvvm", "scf"))
    # With each more, a pass that looks for the patterns of all that are loaded has more to look at.
    assert not any(context.is_dialect_loaded(name) for name in ("transform", "tosa", "spirv", "sparse_tensor"))


def test_an_op_is_made_from_python_values(context: ir.Context) -> None:
    module, block = empty_graph(ROW)
    at = {"ip": ir.InsertionPoint(block), "loc": ir.Location.name("/nodes/3")}
    half = ConstScalarOp.make([], TensorType(DType.FLOAT32, ()), value=0.5, **at).result
    scaled = BinopOp.make([block.arguments[0], half], ROW, op=BinopKind.MUL, **at).result
    padded = TensorType(DType.FLOAT32, (symbol("n") + 4,))
    PadOp.make([scaled], padded, pad_width=((symbol("n"), 0),), **at)
    NoopOp.make([], ROW, **at)
    SinkOp.make([half, scaled], None, **at)
    func.ReturnOp([], ip=ir.InsertionPoint(block))
    verify(module, "test")
    check_ir(
        module,
        """
        // CHECK:      %[[HALF:.*]] = "kiln.const_scalar"() {value = 5.000000e-01 : f32}
        // CHECK-NEXT: %[[SCALED:.*]] = "kiln.binop"(%arg0, %[[HALF]]) {op = "mul"}
        // CHECK-NEXT: "kiln.pad"(%[[SCALED]]) {pad_width = {{\\[\\[}}"n", 0]]}
        // CHECK-NEXT: "kiln.noop"()
        // CHECK-NEXT: "kiln.sink"(%[[HALF]], %[[SCALED]])
        """,
    )
    assert {node_index(op) for op in kiln_ops(module.operation)} == {None}


def test_a_field_that_an_op_does_not_have_is_refused(context: ir.Context) -> None:
    _, block = empty_graph(ROW)
    with pytest.raises(KeyError, match="kind"):
        BinopOp.make([*block.arguments, *block.arguments], ROW, kind=BinopKind.ADD)


def test_more_types_of_operands_than_an_op_takes_are_refused(context: ir.Context) -> None:
    _, block = empty_graph(*(TensorType(DType.FLOAT32, (size,)) for size in range(17)))
    with pytest.raises(ValueError, match="takes 16 runs of operands of equal type, not 17"):
        SinkOp.make(list(block.arguments), None)


def test_optional_operands_are_none_when_they_are_not_there(context: ir.Context) -> None:
    places = [placeholder(0, [4]), placeholder(1, [2], "int32"), placeholder(2, [2], "bool")]
    index = {"node": "index", "in_var": 0, "idx_var": 1, "dtype": "float32"}
    nodes = [
        *places,
        {**index, "valid_var": None, "out_var": 3},
        {**index, "valid_var": 2, "out_var": 4},
        {"node": "noop", "in_var": 0, "out_var": 5, "dtype": "float32"},
        {"node": "noop", "in_var": None, "out_var": 6, "dtype": "float32"},
    ]
    module = from_graph(graph_of(nodes, [3, 4, 5, 6]), context)
    ungated, gated, copied, zeros = kiln_ops(module.operation)
    assert isinstance(ungated, IndexOp)
    assert isinstance(gated, IndexOp)
    assert isinstance(copied, NoopOp)
    assert isinstance(zeros, NoopOp)
    assert ungated.valid is None
    assert gated.valid is not None
    assert type_of(gated.valid).dtype is DType.BOOL
    assert copied.source is not None
    assert zeros.source is None


def test_dead_ops_go_and_sinks_stay(context: ir.Context) -> None:
    nodes = [placeholder(0, [4]), unary(1, 0), binop(2, 0, 0), {"node": "sink", "deps": [2], "dtype": "unit"}]
    module = from_graph(graph_of(nodes, [0]), context)
    PassManager.parse("builtin.module(canonicalize)").run(module.operation)
    check_ir(module, "// CHECK-NOT: kiln.unary\n// CHECK: kiln.binop\n// CHECK: kiln.sink")

"""A kernel as stages over shared rows."""

from __future__ import annotations

import pytest

from passes.loops.domain import Domain, Loop, domain_of
from passes.loops.index_space import IndexSpace
from passes.loops.scalar_dag import Load
from passes.trace.kernel_body import kernel_body
from passes.values import Function, Value
from tensorkiln import expr
from tensorkiln.build import Builder, gelu, matmul, relu, scatter, softmax
from tensorkiln.dtypes import DType
from tensorkiln.errors import DiagnosticError
from tensorkiln.expr import symbol
from tensorkiln.types import TensorType
from tests.passes.modules import bodies, body, decomposed, output, read_graph


def test_a_map_is_one_stage_without_reductions() -> None:
    b = Builder("map")
    kernel = body(output(b, b.input("float32", (4, 1, 6)) + 1.0))
    (stage,) = kernel.stages
    assert stage.combine is None
    assert [loop.extent for loop in stage.domain.loops] == [4, 6]
    assert stage.domain.address == 6 * symbol("r0") + symbol("r1")
    assert [store.operand for store in stage.stores] == [1]
    assert kernel.rows == stage.domain.loops


def test_a_softmax_is_four_stages_and_keeps_what_only_it_reads() -> None:
    b = Builder("softmax")
    kernel = body(output(b, softmax(b.input("float32", (32, 100)), -1)))
    assert [stage.combine for stage in kernel.stages] == ["max", None, "sum", None]
    assert [loop.name for loop in kernel.rows] == ["r0"]
    assert all(stage.domain.loops[0] == kernel.rows[0] for stage in kernel.stages)
    assert [kernel.is_local(number) for number in range(len(kernel.operands))] == [False, False, True, True, True]
    result = kernel.stages[-1].stores[0]
    assert not kernel.is_local(result.operand)


def test_maps_over_the_same_loops_share_a_stage_and_its_registers() -> None:
    b = Builder("several")
    x = b.input("float32", (4, 8))
    y = x * x
    kernel = body(output(b, y, y + x))
    (stage,) = kernel.stages
    assert [store.operand for store in stage.stores] == [1, 2]
    first, second = stage.elements
    assert first is not second
    loaded = {node.operand for node in _loads(second)}
    assert loaded == {0}


def test_a_root_that_only_its_own_stage_reads_has_no_memory() -> None:
    b = Builder("feed_forward")
    x, w, bias = b.input("float32", (32, 64)), b.input("float32", (64, 48)), b.input("float32", (48,))
    kernel = body(output(b, gelu(matmul(x, w) + bias)))
    product, epilogue = kernel.stages
    (result,) = epilogue.stores
    assert not kernel.is_local(result.operand)
    assert kernel.operands[kernel.local_from :] == tuple(entry.root for entry in product.stores)


def test_a_root_that_a_later_stage_reads_has_memory_of_its_own() -> None:
    b = Builder("centred")
    x = b.input("float32", (32, 100))
    kernel = body(output(b, x - x.mean(1, keepdims=True)))
    kept = [kernel.operands[entry.operand] for stage in kernel.stages[:-1] for entry in stage.stores]
    assert list(kernel.operands[kernel.local_from :]) == kept


def _loads(node: object) -> list[Load]:
    if isinstance(node, Load):
        return [node]
    return [load for arg in getattr(node, "args", ()) for load in _loads(arg)]


def test_a_product_and_its_activation_are_a_reduction_and_a_map() -> None:
    b = Builder("dense")
    x, w, bias = b.input("float32", (32, 64)), b.input("float32", (64, 48)), b.input("float32", (48,))
    kernel = body(output(b, relu(matmul(x, w) + bias)))
    assert [stage.combine for stage in kernel.stages] == ["sum", None]
    assert [loop.extent for loop in kernel.stages[0].domain.reduction] == [64]
    assert kernel.stages[1].domain.loops == kernel.rows


def test_a_scatter_has_no_stages() -> None:
    b = Builder("scatter")
    kernel = body(output(b, scatter(b.input("int32", (4, 8)), b.input("float32", (4, 8)), 1, (4, 16))))
    assert (kernel.rows, kernel.stages) == ((), ())


def test_rows_that_a_root_does_not_have_are_refused() -> None:
    arguments, roots = [], []
    for position, rows in enumerate((4, 5)):
        kind = TensorType(DType.FLOAT32, (rows, 8))
        argument = Value("argument", (), kind, "", position)
        arguments.append(argument)
        roots.append(Value("unary", (argument,), kind, f"/nodes/{position}", position, {"op": "neg"}, is_root=True))
    function = Function("kernel_0", tuple(arguments), tuple(roots), tuple(roots), {})
    with pytest.raises(DiagnosticError, match="unary does not have the rows of its kernel") as raised:
        kernel_body(function, 1)
    assert list(raised.value.pointers) == ["/nodes/1"]
    assert raised.value.details["stage"] == "schedule"


def test_every_kernel_is_traced_by_itself() -> None:
    b = Builder("axes")
    x = b.input("float32", (512, 512))
    first, second = bodies(output(b, x.sum(0), x.sum(1)))
    assert first.nodes is not second.nodes
    assert [len(kernel.operands) for kernel in (first, second)] == [2, 2]


def test_a_domain_has_a_loop_for_every_dimension_but_those_of_size_one() -> None:
    b = Builder("domain")
    n = b.symbol("n", 1, 64)
    function = read_graph(decomposed(output(b, b.input("float32", (4, 1, n, 6)).sum(2, keepdims=True))))
    (root,) = [value for value in function.values if value.kind == "reduce_axis"]
    domain = domain_of(root, IndexSpace(function.symbols), "x")
    assert domain.loops == (Loop("x0", 4), Loop("x1", symbol("n"), True), Loop("x2", 6))
    assert domain.index((4, 1, n, 6)) == (symbol("x0"), 0, symbol("x1"), symbol("x2"))
    assert domain.address == 6 * symbol("x0") + symbol("x2")
    assert domain.parallel == (Loop("x0", 4), Loop("x2", 6))


def test_a_domain_over_other_loops_is_the_same_points() -> None:
    i, j = symbol("i"), symbol("j")
    domain = Domain((Loop("i", 4), Loop("j", 6)), (i, j), 6 * i + j)
    flat = symbol("f")
    over = domain.over((Loop("f", 24),), {"i": expr.floordiv(flat, 6), "j": expr.floormod(flat, 6)})
    assert over.address == flat
    assert over.positions == (expr.floordiv(flat, 6), expr.floormod(flat, 6))

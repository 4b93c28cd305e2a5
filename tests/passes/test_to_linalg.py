"""A kernel as linalg on tensors: what it looks like, that it says all there is, and that nothing behind it traces."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from dialect.mlir import ir
from passes.loops.body import KernelBody
from passes.to_linalg import kernels as kernels_module
from passes.to_linalg.kernels import STORES, kernels_to_linalg
from passes.to_linalg.read_kernel import read_kernel
from passes.to_linalg.scalar_ops import ScalarFunctions
from passes.to_linalg.write_kernel import SUFFIX, KernelWriter
from passes.trace import kernel_body as trace_module
from passes.values import BODY, NODES, ROOT, ROOTS, functions_of, is_kernel, read_symbols
from tensorkiln.build import Builder, conv2d, flip, matmul, max_pool2d, pad, relu, scatter, softmax, take
from tensorkiln.graph import Graph
from tests.compiled import compiled, run
from tests.filecheck import check_ir
from tests.passes.modules import TARGET, after, kernels, output


def linalg(graph: Graph, target: str = TARGET) -> ir.Module:
    return after("to-linalg", graph, target)


def scaled() -> Graph:
    b = Builder("scaled")
    return output(b, b.input("float32", (b.symbol("n", 1, 64), 4)) * 2.0)


def turned() -> Graph:
    b = Builder("turned")
    return output(b, flip(b.input("float32", (4, 6)).transpose(), 0) + 1.0)


def reversed_rows() -> Graph:
    b = Builder("reversed")
    return output(b, flip(b.input("float32", (b.symbol("n", 1, 64), 4)), 0) + 1.0)


def padded_convolution() -> Graph:
    b = Builder("convolution")
    x, w = b.input("float32", (1, 3, b.symbol("n", 4, 64), 8)), b.input("float32", (8, 3, 3, 3))
    return output(b, relu(conv2d(x, w, padding=1)))


def pooled() -> Graph:
    b = Builder("pooled")
    return output(b, max_pool2d(b.input("float32", (1, 2, 8, 8)), 2))


def normalised() -> Graph:
    b = Builder("normalised")
    return output(b, softmax(b.input("float32", (b.symbol("n", 1, 64), 32))))


def dense() -> Graph:
    b = Builder("dense")
    x, w = b.input("float32", (b.symbol("n", 1, 64), 16)), b.input("float32", (16, 32))
    return output(b, relu(matmul(x, w) + b.input("float32", (32,))))


def gathered() -> Graph:
    b = Builder("gathered")
    return output(b, take(b.input("float32", (b.symbol("n", 1, 64), 4)), b.input("int32", (5,)), 0))


def scattered() -> Graph:
    b = Builder("scattered")
    return output(b, scatter(b.input("int32", (3, 4)), b.input("float32", (3, 4)), 1, (3, b.symbol("n", 1, 64))))


def compared() -> Graph:
    b = Builder("compared")
    x = b.input("bool", (8,))
    return output(b, x & (b.input("uint8", (8,)) < 3))


def halves() -> Graph:
    b = Builder("halves")
    x = b.input("bfloat16", (b.symbol("n", 1, 64), 4))
    return output(b, (x * x).max(1))


def divided() -> Graph:
    b = Builder("divided")
    x, y = b.input("int32", (8,)), b.input("int32", (8,))
    return output(b, x // y)


GRAPHS: dict[str, Callable[[], Graph]] = {
    made.__name__: made
    for made in (
        *(scaled, turned, reversed_rows, padded_convolution, pooled, normalised, dense, gathered, scattered),
        *(compared, halves, divided),
    )
}


def test_a_movement_is_an_affine_map_of_the_loops() -> None:
    check_ir(
        linalg(turned()),
        """
        // CHECK: [[MOVED:#.*]] = affine_map<(d0, d1) -> (d1, -d0 + 5)>
        // CHECK: func.func private @kernel_0(tensor<4x6xf32>) -> tensor<6x4xf32>
        // CHECK: func.func private @kernel_0_linalg(%[[X:.*]]: tensor<4x6xf32>) -> tensor<6x4xf32>
        // CHECK: linalg.generic {indexing_maps = [[[MOVED]], {{.*}}], iterator_types = ["parallel", "parallel"]}
        // CHECK-SAME: ins(%[[X]] :
        // CHECK-NOT: linalg.index
        // CHECK: arith.addf
        """,
    )


def test_a_movement_by_a_symbol_is_computed_in_the_body() -> None:
    check_ir(
        linalg(reversed_rows()),
        """
        // CHECK: affine_map<(d0)[s0] -> (-d0 + s0 - 1)>
        // CHECK: @kernel_0_linalg(%[[X:.*]]: tensor<?x4xf32>, %[[N:.*]]: index)
        // CHECK: %[[ROW:.*]] = linalg.index 0
        // CHECK: %[[AT:.*]] = affine.apply {{.*}}(%[[ROW]])[%[[N]]]
        // CHECK: tensor.extract %[[X]][%[[AT]],
        """,
    )


def test_a_padded_convolution_reads_under_its_conditions() -> None:
    check_ir(
        linalg(padded_convolution()),
        """
        // CHECK: linalg.fill
        // CHECK: linalg.generic
        // CHECK-SAME: iterator_types = [{{("parallel", )+}}"reduction", "reduction", "reduction"]
        // CHECK: arith.cmpi sge
        // CHECK: scf.if {{.*}} -> (f32) {
        // CHECK: tensor.extract
        // CHECK: } else {
        // CHECK: arith.mulf
        // CHECK: arith.addf
        // CHECK: linalg.generic
        // CHECK: arith.maximumf
        """,
    )


def test_windows_state_how_far_they_run() -> None:
    check_ir(
        linalg(pooled()),
        """
        // CHECK: affine_map<({{.*}}) -> (0, d0, d1 * 2 + d3, d2 * 2 + d4)>
        // CHECK: tensor.empty() : tensor<2xi8>
        // CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
        // CHECK: arith.maximumf
        """,
    )


def test_guarded_arithmetic_is_a_function_that_says_what_it_is() -> None:
    check_ir(
        linalg(divided()),
        """
        // CHECK: func.call @kiln.idiv.int32(
        // CHECK: func.func private @kiln.idiv.int32(%{{.*}}: i32, %{{.*}}: i32) -> i32
        // CHECK-SAME: kiln.scalar = {{\\[}}["int32", "int32", "int32"], "binop", "idiv", "int32", "int32"]
        // CHECK: arith.select
        """,
    )


def test_an_index_from_data_is_read_where_it_is_in_range() -> None:
    check_ir(
        linalg(gathered()),
        """
        // CHECK: @kernel_0_linalg(%[[X:.*]]: tensor<?x4xf32>, %{{.*}}: tensor<5xi32>, %[[N:.*]]: index)
        // CHECK: %[[AT:.*]] = arith.index_cast {{.*}} : i32 to index
        // CHECK: arith.cmpi ult, %[[AT]], %[[N]]
        // CHECK: scf.if
        // CHECK: tensor.extract %[[X]][%[[AT]],
        """,
    )


def test_a_scatter_updates_in_order() -> None:
    check_ir(
        linalg(scattered()),
        """
        // CHECK: kiln.scatter = array<i64: 1, 0, 1>
        // CHECK: scf.for {{.*}} iter_args
        // CHECK: scf.for {{.*}} iter_args
        // CHECK: arith.cmpi ult
        // CHECK: tensor.insert
        """,
    )


def test_a_scatter_that_combines_begins_with_the_initial_values() -> None:
    b = Builder("combined")
    indices, updates, x = b.input("int32", (3, 1)), b.input("float32", (3, 8)), b.input("float32", (5, 8))
    check_ir(
        linalg(output(b, scatter(indices.expand(3, 8), updates, 0, into=x, reduction="add"))),
        """
        // CHECK: kiln.reduction = "add", kiln.scatter = array<i64: 0, 0, 1, 2>
        // CHECK: %[[BEGUN:.*]] = linalg.generic
        // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[BEGUN]])
        // CHECK: tensor.extract %{{.*}}[%{{.*}}, %c0{{.*}}] : tensor<3x1xi32>
        // CHECK: arith.cmpi ult
        // CHECK: arith.addf
        // CHECK: tensor.insert
        """,
    )


def test_a_bool_outside_is_a_byte() -> None:
    check_ir(
        linalg(compared()),
        """
        // CHECK: @kernel_0_linalg(%{{.*}}: tensor<8xi8>, %{{.*}}: tensor<8xi8>) -> tensor<8xi8>
        // CHECK: arith.cmpi ne, {{.*}} : i8
        // CHECK: arith.cmpi ult, {{.*}} : i8
        // CHECK: arith.extui {{.*}} : i1 to i8
        """,
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_are_the_same_for_every_target(name: str) -> None:
    assert str(linalg(GRAPHS[name](), "cuda:sm_90")) == str(linalg(GRAPHS[name](), "cpu:aarch64"))


@pytest.mark.parametrize("name", GRAPHS)
def test_a_kernel_that_is_read_back_is_written_as_it_was(name: str) -> None:
    module = linalg(GRAPHS[name]())
    functions, symbols = functions_of(module), read_symbols(module)
    for kernel in [name for name, function in functions.items() if is_kernel(function)]:
        body = read_kernel(functions, kernel, symbols)
        if not body.stages:
            continue
        with module.context, ir.Location.unknown():
            again = ir.Module.create()
            with ir.InsertionPoint(again.body):
                KernelWriter(body, ScalarFunctions(again.body)).write()
        written = str(functions[kernel + SUFFIX])
        # A kernel that is read back has no roots in a graph.
        assert str(functions_of(again)[kernel + SUFFIX]) == re.sub(r" attrs =  \{kiln.stores = [^}]*\}", "", written)


def test_calls_and_loops_say_of_which_nodes_a_kernel_is() -> None:
    b = Builder("classes")
    graph = output(b, softmax(b.input("float32", (64, 64)) @ b.input("float32", (64, 64)), -1))
    formed, traced = kernels(graph), linalg(graph)
    before, after_it = functions_of(formed), functions_of(traced)
    seen: list[str] = []
    for call in (op.operation for op in before["graph"].regions[0].blocks[0].operations):
        if call.name != "func.call":
            continue
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        ops = [op.operation for op in before[name].regions[0].blocks[0].operations][:-1]
        nodes = [graph.nodes[node].node for node in ir.DenseI64ArrayAttr(call.attributes[BODY])]
        assert [op.name for op in ops] == [f"kiln.{kind}" for kind in nodes]
        roots = [op.name for op in ops if ROOT in op.attributes]
        parts = [set(ir.DenseI64ArrayAttr(part)) for part in ir.ArrayAttr(call.attributes[ROOTS])]
        assert len(parts) == len(roots)
        assert set().union(*parts) == set(ir.DenseI64ArrayAttr(call.attributes[NODES]))
        for op in (each.operation for each in after_it[name + SUFFIX].regions[0].blocks[0].operations):
            if op.name == "linalg.generic":
                is_reduction = "reduction" in str(op.attributes["iterator_types"])
                stored = {roots[at] for at in ir.DenseI64ArrayAttr(op.attributes[STORES])}
                assert (stored == {"kiln.reduce_axis"}) == is_reduction
                seen += stored
    assert seen.count("kiln.reduce_axis") == 3


def test_a_kernel_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []

    def counted(*given: object) -> KernelBody:
        body = trace_module.kernel_body(*given)  # type: ignore[arg-type]
        traced.append(body.function.name)
        return body

    monkeypatch.setattr(kernels_module, "kernel_body", counted)
    b = Builder("network")
    x = b.input("float32", (b.symbol("n", 1, 64), 32))
    hidden = softmax(relu(x @ b.input("float32", (32, 48))))
    graph = output(b, hidden @ b.input("float32", (48, 32)), hidden.sum(0))
    made = compiled(graph)
    assert sorted(traced) == sorted({kernel.entry for kernel in made.program.kernels})


def test_values_that_agree_at_run_time_only_are_cut_to_one_extent() -> None:
    """A product whose rows are written as n and as 1."""
    b = Builder("agree")
    n = b.symbol("n", 0, 3)
    x, w = b.input("float32", (n, 4)), b.input("float32", (4, 8))
    graph = output(b, relu(pad(x @ w, ((0, 1), (0, 0)))))
    arrays = [np.ones((2, 4), np.float32), np.ones((4, 8), np.float32)]
    (found,) = run(graph, *arrays, n=2)
    np.testing.assert_array_equal(found, [[4.0] * 8] * 2 + [[0.0] * 8])


def test_no_kernel_is_written_twice() -> None:
    module = kernels_to_linalg(kernels(dense()))
    names = [ir.StringAttr(op.operation.attributes["sym_name"]).value for op in module.body.operations]
    assert len(names) == len(set(names))
    assert [name for name in names if name.endswith(SUFFIX)] == ["kernel_0_linalg"]

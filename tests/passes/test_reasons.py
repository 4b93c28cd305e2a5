"""Why kernels are apart and loops are in no vectors, as the passes that decide say it."""

from __future__ import annotations

import pytest

from dialect.module import graph_function
from passes.values import read_function, read_symbols
from tensorkiln.build import Builder, exp2, pad, scatter, sin, softmax
from tensorkiln.graph import Graph
from tensorkiln.schedule import BarrierReason, FusionBarrier, KernelItem, OpRef, Scalar
from tests.compiled import compiled
from tests.passes.modules import TARGET, kernels, output
from tests.passes.test_program_plan import chain

SQUARE = (64, 64)


def apart(graph: Graph, *, fusion: bool = True) -> list[tuple[int, int, str]]:
    """`(writer, reader, reason)` of all calls of kernels, in order."""
    module = kernels(graph, fusion=fusion)
    called = read_function(graph_function(module).operation, read_symbols(module)).values
    # A call has a value for each of its results.
    calls = {call.position: call for call in called if call.kind == "func.call"}
    return [(writer, reader, reason) for call in calls.values() for _, writer, reader, reason in call.fields["apart"]]


def kinds(graph: Graph, *, fusion: bool = True) -> list[tuple[str, str, str]]:
    """The same by what the nodes are."""
    nodes = graph.nodes
    return [(nodes[writer].node, nodes[reader].node, reason) for writer, reader, reason in apart(graph, fusion=fusion)]


def scattered() -> Graph:
    b = Builder("scattered")
    indices, updates = b.input("int32", (4, 8)), b.input("float32", (4, 8))
    return output(b, -scatter(indices, updates * updates, 1, (4, 16)))


def long_rows() -> Graph:
    b = Builder("long")
    x = b.input("float32", (4, 100_000))
    return output(b, x - x.max(1).reshape(4, 1).expand(4, 100_000))


def product_of_a_softmax() -> Graph:
    b = Builder("attention")
    return output(b, softmax(b.input("float32", SQUARE), -1) @ b.input("float32", SQUARE))


def softmax_of_a_product() -> Graph:
    b = Builder("classes")
    return output(b, softmax(b.input("float32", SQUARE) @ b.input("float32", SQUARE), -1))


def many_results() -> Graph:
    b = Builder("results")
    made = [b.input("float32", SQUARE) * 1.5]
    for _ in range(26):
        made.append(made[-1] * 1.5)
    return output(b, *made)


def prepared() -> Graph:
    b = Builder("prepared")
    x, weight = b.input("float32", SQUARE), b.parameter("float32", SQUARE)
    return output(b, x + exp2(weight).sum(1))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (scattered(), [("binop", "scatter", "whole-buffers"), ("scatter", "unary", "whole-buffers")]),
        (long_rows(), [("reduce_axis", "binop", "row-size")]),
        (product_of_a_softmax(), [("binop", "reduce_axis", "contraction")]),
        (
            softmax_of_a_product(),
            [("reduce_axis", "reduce_axis", "other-loops"), ("reduce_axis", "unary", "later-kernel")],
        ),
        (chain(), [("reduce_axis", "reduce_axis", "beyond-row")]),
        (many_results(), [("binop", "binop", "kernel-size")]),
        (prepared(), [("reduce_axis", "binop", "prepared")]),
    ],
    ids=lambda value: value.name if isinstance(value, Graph) else "",
)
def test_a_kernel_says_why_it_is_apart_from_what_it_reads(
    graph: Graph, expected: list[tuple[str, str, BarrierReason]]
) -> None:
    assert kinds(graph) == expected


def test_without_fusion_that_is_the_reason() -> None:
    assert {reason for *_, reason in apart(chain(), fusion=False)} == {"fusion-off"}


def test_one_kernel_has_nothing_to_say() -> None:
    b = Builder("one")
    assert apart(output(b, softmax(b.input("float32", (32, 100)), -1))) == []


def test_an_opportunity_has_the_reason_in_the_nodes_of_its_own_graph() -> None:
    b = Builder("renamed")
    x, n = b.input("float32", (128, 128)), b.symbol("rows", 1, 64)
    unused = b.input("float32", (n, 4)) * 2.0
    first = x.sum(0)
    graph = output(b, (first.reshape(128, 1) * x).sum(0).reshape(128, 1).expand(128, 128) + x)
    (found,) = compiled(graph, TARGET).program.schedule.fusion_opportunities
    sums = [at for at, node in enumerate(graph.nodes) if node.node == "reduce_axis"]
    assert unused.var not in graph.output_vars
    assert found.barrier == FusionBarrier(
        reason="beyond-row",
        writer=OpRef(node=sums[0], kind="reduce_axis"),
        reader=OpRef(node=sums[1], kind="reduce_axis"),
    )


def padded() -> Graph:
    b = Builder("padded")
    return output(b, sin(pad(b.input("float32", (300, 301)), ((1, 1), (1, 1)))))


def columns() -> Graph:
    b = Builder("columns")
    return output(b, b.input("float32", (5000, 1)).sum(1))


@pytest.mark.parametrize(
    ("graph", "reason"),
    [(scattered(), "ordered"), (padded(), "guarded"), (columns(), "single-point")],
    ids=lambda value: value.name if isinstance(value, Graph) else "",
)
def test_a_loop_in_no_vectors_says_why(graph: Graph, reason: str) -> None:
    items = [item.operation for item in compiled(graph, TARGET).program.schedule.items]
    found: list[tuple[KernelItem, Scalar]] = [
        (item, hint)
        for item in items
        if isinstance(item, KernelItem)
        for hint in item.hints
        if isinstance(hint, Scalar)
    ]
    ((item, hint),) = found
    assert hint.reason == reason
    assert hint.axis not in item.iter.mapping.vec

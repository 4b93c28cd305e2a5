"""Order, rewriting and identity of node graphs."""

from __future__ import annotations

from tensorkiln.launch import Binary, BinaryOp, Const, LaunchNode
from tensorkiln.program_ast import Sink
from tensorkiln.program_walk import content_digest, rewrite, toposort


def add(left: LaunchNode, right: LaunchNode) -> Binary:
    return Binary(BinaryOp.ADD, left, right)


def test_operands_come_before_their_users_and_shared_nodes_once() -> None:
    one, two = Const(1), Const(2)
    total = add(one, two)
    sink = Sink((add(total, one), total))
    order = list(toposort(sink))
    assert order[:3] == [one, two, total]
    assert order[-1] is sink
    assert len(order) == 5


def test_a_deep_graph_is_walked_without_recursion() -> None:
    node: LaunchNode = Const(0)
    for _ in range(5000):
        node = add(node, Const(1))
    assert sum(1 for _ in toposort(node)) == 10_001
    assert len(content_digest(node)) == 64


def test_a_rule_sees_operands_that_are_already_rewritten() -> None:
    def fold(node: LaunchNode) -> LaunchNode | None:
        match node:
            case Binary(BinaryOp.ADD, Const(left), Const(right)):
                return Const(left + right)
            case _:
                return None

    assert rewrite(Sink((add(add(Const(1), Const(2)), Const(4)),)), fold) == Sink((Const(7),))


def test_a_graph_that_no_rule_matches_is_the_same_graph() -> None:
    sink = Sink((add(Const(1), Const(2)),))
    assert rewrite(sink, lambda _: None) is sink


def test_the_digest_does_not_depend_on_sharing() -> None:
    shared = add(Const(1), Const(2))
    assert content_digest(Sink((add(shared, shared),))) == content_digest(
        Sink((add(add(Const(1), Const(2)), add(Const(1), Const(2))),))
    )


def test_the_digest_tells_types_values_and_order_apart() -> None:
    graphs = [Const(1), Const(1.0), Const(True), add(Const(1), Const(2)), add(Const(2), Const(1))]
    assert len({content_digest(graph) for graph in graphs}) == len(graphs)

"""If, Loop and Scan while a model is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tensorkiln.errors import InvalidGraphError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def value(name: str, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def body(nodes: list[NodeProto], inputs: list[Any], outputs: list[Any]) -> GraphProto:
    return helper.make_graph(nodes, "body", inputs, outputs)


def model(*nodes: NodeProto, inputs: dict[str, Any] | None = None, **weights: Any) -> ModelProto:
    given = {"x": X} if inputs is None else inputs
    graph = helper.make_graph(
        list(nodes),
        "control",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ],
        [value(name, 0) for name in nodes[-1].output if name],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def results(proto: ModelProto, **given: Any) -> list[Any]:
    imported = load(proto)
    return list(evaluate(imported.graph, *imported.arguments(**(given or {"x": X}))))


def branches() -> Any:
    return {
        "then_branch": body([helper.make_node("Neg", ["x"], ["t"])], [], [value("t")]),
        "else_branch": body([helper.make_node("Abs", ["x"], ["e"])], [], [value("e")]),
    }


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_condition_chooses_a_branch_that_sees_the_graph_around_it(condition: bool) -> None:
    proto = model(helper.make_node("If", ["c"], ["y"], **branches()), c=np.array(condition))
    np.testing.assert_array_equal(results(proto)[0], -X if condition else X)


@pytest.mark.parametrize("flag", [True, False])
def test_a_computed_condition_chooses_between_the_results_of_both_branches(flag: bool) -> None:
    given = {"x": X, "flag": np.array([flag])}
    proto = model(helper.make_node("If", ["flag"], ["y"], **branches()), inputs=given)
    np.testing.assert_array_equal(results(proto, **given)[0], -X if flag else X)
    # What is the same in both is chosen of nothing.
    same = body([helper.make_node("Identity", ["x"], ["s"])], [], [value("s")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=same, else_branch=same)
    assert all(each.node != "ternary" for each in load(model(node, inputs=given)).graph.nodes)


def test_branches_of_different_shapes_name_the_input_that_chooses() -> None:
    given = {"x": X, "flag": np.array(True)}
    row = body([helper.make_node("ReduceMax", ["x"], ["r"], keepdims=0)], [], [value("r")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branches()["then_branch"], else_branch=row)
    wanted = r"give float32 \(3, 2\) and float32 \(\), and the condition is computed; pass 'flag' in `constants`"
    with pytest.raises(UnsupportedGraphError, match=wanted):
        load(model(node, inputs=given))
    empty = body([helper.make_node("SequenceEmpty", [], ["s"])], [], [value("s")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=empty, else_branch=empty)
    with pytest.raises(
        UnsupportedGraphError, match=r"a branch gives a value that is not a tensor.*; pass 'flag' in `constants`"
    ):
        load(model(node, inputs=given))
    two = body([helper.make_node("Abs", ["x"], ["r"])], [], [value("r"), value("r")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branches()["then_branch"], else_branch=two)
    with pytest.raises(InvalidGraphError, match="its branches give 1 and 2 values"):
        load(model(node, inputs=given))


def test_a_loop_of_computed_turns_in_a_branch_that_is_computed_is_refused() -> None:
    """Run though it was not chosen, it might have no end."""
    given = {"x": X, "flag": np.array(True), "m": np.array(3), "limit": np.array(5), "c": np.array(True)}
    turning = helper.make_node("Loop", ["m", "c", "x"], ["l"], body=growing())
    branch = body([turning], [], [value("l")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branches()["then_branch"], else_branch=branch)
    with pytest.raises(
        UnsupportedGraphError, match="a branch has a loop of computed turns, and the condition is computed"
    ):
        load(model(node, inputs=given))


def test_a_long_sequence_in_a_branch_that_is_computed_is_a_loop() -> None:
    x = np.linspace(-1, 1, 80, dtype=np.float32).reshape(40, 1, 2)
    weights = {name: np.full((1, 3, size), 0.25, np.float32) for name, size in (("w", 2), ("r", 3))}
    rnn = helper.make_node("RNN", ["x", "w", "r"], ["all"], hidden_size=3)
    loop = body([rnn], [], [value("all")])
    other = body([helper.make_node("Expand", ["w0", "dims"], ["zero"])], [], [value("zero")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=loop, else_branch=other)
    dims, zero = np.array([40, 1, 1, 3], np.int64), np.zeros((1, 1, 1, 1), np.float32)
    made = load(model(node, inputs={"x": x, "flag": np.array(True)}, **weights, dims=dims, w0=zero))
    assert any(each.node == "while" for each in made.graph.nodes)
    results = [evaluate(made.graph, *made.arguments(x=x, flag=np.array(flag)))[0] for flag in (True, False)]
    assert np.abs(results[0]).min() > 0
    np.testing.assert_array_equal(results[1], np.zeros((40, 1, 1, 3), np.float32))


def growing() -> GraphProto:
    """Carries `s` doubled, as often as the count says."""
    return body(
        [helper.make_node("Add", ["s", "s"], ["d"]), helper.make_node("Identity", ["c"], ["again"])],
        [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s")],
        [value("again", TensorProto.BOOL), value("d")],
    )


def doubling() -> GraphProto:
    """Carries `s` doubled, collects it with the number of the turn, and goes on while the turn is below `limit`."""
    return body(
        [
            helper.make_node("Add", ["s", "s"], ["d"]),
            helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["d", "f"], ["seen"]),
            helper.make_node("Less", ["i", "limit"], ["again"]),
        ],
        [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s")],
        [value("again", TensorProto.BOOL), value("d"), value("seen")],
    )


@pytest.mark.parametrize(("condition", "trips", "limit", "turns"), [("c", 4, 9, 4), ("c", 9, 1, 2), ("", 5, 1, 5)])
def test_a_loop_runs_as_often_as_its_count_and_its_conditions_say(
    condition: str, trips: int, limit: int, turns: int
) -> None:
    loop = helper.make_node("Loop", ["m", condition, "x"], ["last", "all"], body=doubling())
    last, collected = results(model(loop, m=np.array(trips), limit=np.array(limit), c=np.array(True)))
    np.testing.assert_array_equal(last, X * 2**turns)
    np.testing.assert_array_equal(collected, np.stack([X * 2 ** (turn + 1) + turn for turn in range(turns)]))


def test_a_loop_without_an_end_is_refused() -> None:
    forever = body(
        [helper.make_node("Identity", ["c"], ["again"]), helper.make_node("Neg", ["s"], ["n"])],
        [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s")],
        [value("again", TensorProto.BOOL), value("n")],
    )
    with pytest.raises(UnsupportedGraphError, match="it takes more than 4096 turns, or has no end"):
        load(model(helper.make_node("Loop", ["", "", "x"], ["y"], body=forever)))


def halving(collects: bool = False) -> GraphProto:
    """Carries `s` halved, its row of weights as it is, and goes on while there is a total above `least`."""
    nodes = [
        helper.make_node("Mul", ["s", "half"], ["h"]),
        helper.make_node("Add", ["h", "w"], ["n"]),
        helper.make_node("ReduceSum", ["n"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "least"], ["again"]),
        helper.make_node("Identity", ["w"], ["kept"]),
    ]
    given = [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s"), value("w")]
    results = [value("again", TensorProto.BOOL), value("n"), value("kept")]
    return body(nodes, given, [*results, value("n")] if collects else results)


@pytest.mark.parametrize("trips", [0, 2, 50])
@pytest.mark.parametrize("named", [("m", "c"), ("m", ""), ("", "c")])
def test_a_loop_whose_turns_are_computed_is_one_of_the_graph(trips: int, named: tuple[str, str]) -> None:
    """By its count, which is an input, by its conditions, or by both; it reads weights of the model around it."""
    loop = helper.make_node("Loop", [*named, "x", "weights"], ["y", "z"], body=halving())
    given = {"x": X, **({"m": np.array(trips)} if named[0] else {})}
    weights = np.full(X.shape, 0.01, np.float32)
    numbers = {"half": np.float32(0.5), "least": np.float32(X.sum() / 9), "weights": weights, "c": np.array(True)}
    imported = load(model(loop, inputs=given, **numbers))
    found = evaluate(imported.graph, *imported.arguments(**given))
    expected, turn, goes_on = X, 0, True
    while goes_on and (turn < trips or not named[0]):
        expected, turn = expected * np.float32(0.5) + weights, turn + 1
        goes_on = not named[1] or expected.sum() > numbers["least"]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_a_loop_that_grows_what_it_carries_asks_for_its_count() -> None:
    growing = body(
        [helper.make_node("Concat", ["s", "s"], ["n"], axis=0), helper.make_node("Identity", ["c"], ["again"])],
        [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s")],
        [value("again", TensorProto.BOOL), value("n")],
    )
    proto = model(helper.make_node("Loop", ["m", "", "x"], ["y"], body=growing), inputs={"x": X, "m": np.array(1)})
    with pytest.raises(UnsupportedGraphError, match=r"it carries float32 .*; pass 'm' in `constants`"):
        load(proto)


def test_a_loop_that_collects_turns_that_are_computed_is_refused() -> None:
    loop = helper.make_node("Loop", ["m", "c", "x", "x"], ["y", "z", "all"], body=halving(collects=True))
    proto = model(loop, m=np.array(3), half=np.float32(0.5), least=np.float32(0), c=np.array(True))
    with pytest.raises(UnsupportedGraphError, match="it collects 1 values of turns that are counted at run time"):
        load(proto)


@pytest.mark.parametrize("backwards", [0, 1])
def test_a_scan_carries_its_state_over_the_elements_of_an_axis(backwards: int) -> None:
    running = body(
        [helper.make_node("Add", ["s", "row"], ["t"]), helper.make_node("Identity", ["t"], ["seen"])],
        [value("s"), value("row")],
        [value("t"), value("seen")],
    )
    scan = helper.make_node(
        "Scan",
        ["start", "x"],
        ["last", "sums"],
        body=running,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_input_directions=[backwards],
        scan_output_axes=[1],
        scan_output_directions=[backwards],
    )
    last, sums = results(model(scan, start=np.zeros(3, np.float32)))
    np.testing.assert_array_equal(last, X.sum(1))
    expected = np.cumsum(X[:, ::-1], 1)[:, ::-1] if backwards else np.cumsum(X, 1)
    np.testing.assert_array_equal(sums, expected)


def test_a_scan_of_axes_that_differ_is_invalid() -> None:
    pair = body([helper.make_node("Identity", ["a"], ["y"])], [value("a"), value("b")], [value("y")])
    scan = helper.make_node("Scan", ["x", "w"], ["all"], body=pair, num_scan_inputs=2)
    with pytest.raises(InvalidGraphError, match="the scanned axes have the extents"):
        load(model(scan, w=np.zeros((4, 2), np.float32)))

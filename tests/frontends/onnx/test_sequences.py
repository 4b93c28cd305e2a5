"""Sequences of known length and optional values, of computed tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, parser

from tensorkiln.errors import CallInputError, TensorkilnError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]
X = np.arange(12, dtype=np.float32).reshape(2, 6)
ANY = TensorProto.UNDEFINED


def _tensor(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _result(name: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, ANY, None)


def _integer(name: str, value: int) -> NodeProto:
    return helper.make_node("Constant", [], [name], value_int=value)


def _model(nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto], *outputs: str) -> ModelProto:
    graph = helper.make_graph(list(nodes), "several", list(inputs), [_result(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def _run(proto: ModelProto, symbols: dict[str, Any] | None = None, /, **inputs: Array) -> dict[str, Array]:
    model = load(proto, symbols=symbols)
    sizes = {name: len(inputs["x"]) for name in model.graph.symbols}
    return dict(zip(model.outputs, evaluate(model.graph, *model.arguments(**inputs), **sizes), strict=True))


def test_parts_of_a_tensor_are_moved_about_and_joined():
    nodes = [
        *(_integer("zero", 0), _integer("last", -1)),
        helper.make_node("Constant", [], ["sizes"], value_ints=[1, 2, 3]),
        helper.make_node("SplitToSequence", ["x", "sizes"], ["s"], axis=1),
        helper.make_node("SequenceAt", ["s", "last"], ["three"]),
        helper.make_node("SequenceErase", ["s"], ["short"]),
        helper.make_node("SequenceInsert", ["short", "three", "zero"], ["turned"]),
        helper.make_node("ConcatFromSequence", ["turned"], ["y"], axis=1),
        helper.make_node("SequenceLength", ["turned"], ["n"]),
    ]
    found = _run(_model(nodes, [_tensor("x", "rows", 6)], "y", "n"), {"rows": (1, 8)}, x=X)
    np.testing.assert_array_equal(found["y"], X[:, [3, 4, 5, 0, 1, 2]])
    assert found["n"] == 3


def test_a_sequence_as_an_output_is_an_output_for_each_element():
    nodes = [helper.make_node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0)]
    found = _run(_model(nodes, [_tensor("x", "rows", 6)], "s"), {"rows": (1, 8)}, x=X)
    assert list(found) == [f"s/{place}" for place in range(6)]
    np.testing.assert_array_equal(found["s/4"], X[:, 4])


def _appended() -> GraphProto:
    return helper.make_graph(
        [
            helper.make_node("Add", ["x", "carried"], ["next"]),
            helper.make_node("SequenceInsert", ["before", "next"], ["after"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ],
        "turn",
        [
            _tensor("i", kind=TensorProto.INT64),
            _tensor("goes_on", kind=TensorProto.BOOL),
            _result("carried"),
            _result("before"),
        ],
        [_result("still"), _result("next"), _result("after")],
    )


def test_a_loop_carries_a_sequence_which_grows():
    nodes = [
        _integer("turns", 3),
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("Loop", ["turns", "", "x", "none"], ["last", "all"], body=_appended()),
        helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1),
    ]
    found = _run(_model(nodes, [_tensor("x", 2, 6)], "last", "y"), x=X)
    np.testing.assert_array_equal(found["y"], [2 * X, 3 * X, 4 * X])
    np.testing.assert_array_equal(found["last"], 4 * X)


def test_a_branch_asks_whether_an_optional_value_is_there():
    there = helper.make_graph([helper.make_node("OptionalGetElement", ["o"], ["got"])], "there", [], [_result("got")])
    away = helper.make_graph([helper.make_node("Neg", ["x"], ["not"])], "away", [], [_result("not")])
    type_ = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    branches: dict[str, Any] = {"then_branch": there, "else_branch": away}
    for optional, expected in (
        (helper.make_node("Optional", ["x"], ["o"]), X),
        (helper.make_node("Optional", [], ["o"], type=type_), -X),
    ):
        nodes = [
            optional,
            helper.make_node("OptionalHasElement", ["o"], ["has"]),
            helper.make_node("If", ["has"], ["y"], **branches),
        ]
        np.testing.assert_array_equal(_run(_model(nodes, [_tensor("x", 2, 6)], "y"), x=X)["y"], expected)


SEQUENCES = """
<ir_version: 10, opset_import: ["" : 22]>
several (seq(float[N]) s, optional(float[N]) o) => (float y) { y = ConcatFromSequence <axis = 0> (s) }
"""


def test_inputs_that_are_sequences_are_fixed():
    proto = parser.parse_model(SEQUENCES)
    with pytest.raises(TensorkilnError, match=r"'s' is a sequence, .*; pass 's' in `constants`"):
        load(proto)
    with pytest.raises(TensorkilnError, match="'o' is an optional value; pass 'o' in `constants`"):
        load(proto, constants={"s": [X[0]]})
    with pytest.raises(CallInputError, match="'s' takes a sequence of arrays; what fixes it is NoneType"):
        load(proto, constants={"s": None, "o": None})
    model = load(proto, constants={"s": [X[0], X[1]], "o": None})
    (found,) = evaluate(model.graph, *model.arguments())
    np.testing.assert_array_equal(found, X.reshape(-1))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([helper.make_node("SplitToSequence", ["x"], ["y"])], "how many parts rows elements have depends on symbols"),
        (
            [
                helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
                helper.make_node("SequenceAt", ["s", "i"], ["y"]),
            ],
            "SequenceAt #1: input 1 is computed at run time",
        ),
        (
            [
                _integer("p", 6),
                helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
                helper.make_node("SequenceAt", ["s", "p"], ["y"]),
            ],
            "there is no position 6 in a sequence of 6",
        ),
        (
            [helper.make_node("SequenceConstruct", ["x"], ["s"]), helper.make_node("Relu", ["s"], ["y"])],
            r"Relu #1: input 0 is a seq\(tensor\(float\)\)",
        ),
        (
            [helper.make_node("SequenceEmpty", [], ["s"]), helper.make_node("Relu", ["s"], ["y"])],
            "Relu #1: input 0 is a sequence, not a tensor",
        ),
        (
            [
                helper.make_node("SequenceEmpty", [], ["s"]),
                helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
            ],
            "the sequence has no element to join",
        ),
        (
            [helper.make_node("Optional", [], ["y"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, None))],
            "the output 'y' is an optional value that is not there",
        ),
    ],
)
def test_unknown_or_mismatched_sequences_are_refused(nodes: list[NodeProto], message: str):
    inputs = [_tensor("x", "rows", 6), _tensor("i", kind=TensorProto.INT64)]
    with pytest.raises(TensorkilnError, match=message):
        load(_model(nodes, inputs, "y"), symbols={"rows": (1, 8)})

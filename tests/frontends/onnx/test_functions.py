"""Functions of a model and of ONNX's schemas, read as the nodes that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load, scope
from tensorkiln.reference import evaluate

X = np.array([[1.0, -2.0, 3.0]], np.float32)
OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]


def referring(name: str, kind: int, to: str) -> AttributeProto:
    return AttributeProto(name=name, type=kind, ref_attr_name=to)  # type: ignore[arg-type]  # An enum, typed as its own.


def scaled() -> FunctionProto:
    """`LeakyRelu(x, slope) + shift`, where `shift` may be left out and `slope` is 0.5 unless it is given."""
    leaky = helper.make_node("LeakyRelu", ["x"], ["leaky"])
    leaky.attribute.append(referring("alpha", AttributeProto.FLOAT, "slope"))
    function = helper.make_function("own", "Scaled", ["x", "shift"], ["y"], [leaky, add("leaky", "shift", "y")], OPSETS)
    function.attribute_proto.append(helper.make_attribute("slope", 0.5))
    return function


def add(a: str, b: str, y: str) -> NodeProto:
    return helper.make_node("Add", [a, b], [y])


def model(*nodes: NodeProto, functions: list[FunctionProto]) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "functions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=10)


def result(proto: ModelProto) -> Any:
    imported = load(proto)
    (actual,) = evaluate(imported.graph, *imported.arguments(x=X))
    return actual


@pytest.mark.parametrize(("slope", "expected"), [(None, [[2.0, -3.0, 6.0]]), (0.25, [[2.0, -2.5, 6.0]])])
def test_a_function_takes_the_attribute_of_its_call_or_its_own_default(slope: float | None, expected: Any) -> None:
    call = helper.make_node("Scaled", ["x", "x"], ["y"], domain="own")
    if slope is not None:
        call.attribute.append(helper.make_attribute("slope", slope))
    np.testing.assert_array_equal(result(model(call, functions=[scaled()])), np.array(expected, np.float32))


def test_a_function_calls_another_and_sees_nothing_but_its_inputs() -> None:
    twice = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [
            helper.make_node("Scaled", ["a", "a"], ["x"], domain="own"),
            helper.make_node("Scaled", ["x", "x"], ["b"], domain="own"),
        ],
        OPSETS,
    )
    call = helper.make_node("Twice", ["x"], ["y"], domain="own")
    np.testing.assert_array_equal(result(model(call, functions=[scaled(), twice])), [[4.0, -4.5, 12.0]])
    blind = helper.make_function("own", "Blind", ["a"], ["b"], [add("a", "x", "b")], OPSETS)
    with pytest.raises(InvalidGraphError, match="reads 'x', which no earlier node writes"):
        load(model(helper.make_node("Blind", ["x"], ["y"], domain="own"), functions=[blind]))


def test_an_input_that_a_call_leaves_out_is_missing_in_the_body() -> None:
    clip = helper.make_function(
        "own", "Cut", ["x", "low", "high"], ["y"], [helper.make_node("Clip", ["x", "low", "high"], ["y"])], OPSETS
    )
    zero = helper.make_node("Constant", [], ["zero"], value_float=0.0)
    call = helper.make_node("Cut", ["x", "zero"], ["y"], domain="own")
    np.testing.assert_array_equal(result(model(zero, call, functions=[clip])), [[1.0, 0.0, 3.0]])


def test_a_function_of_the_model_comes_before_an_operator_of_that_name() -> None:
    relu = helper.make_function("", "Relu", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], OPSETS)
    np.testing.assert_array_equal(result(model(helper.make_node("Relu", ["x"], ["y"]), functions=[relu])), -X)


def test_a_function_called_constant_is_run_at_every_call() -> None:
    constant = helper.make_function("own", "Constant", ["x"], ["y"], [add("x", "x", "y")], OPSETS)
    turn = helper.make_graph(
        [
            helper.make_node("Constant", ["s"], ["d"], domain="own"),
            helper.make_node("Identity", ["c"], ["again"]),
        ],
        "turn",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("d", TensorProto.FLOAT, None),
        ],
    )
    three = helper.make_node("Constant", [], ["m"], value_int=3)
    loop = helper.make_node("Loop", ["m", "", "x"], ["y"])
    loop.attribute.append(helper.make_attribute("body", turn))
    np.testing.assert_array_equal(result(model(three, loop, functions=[constant])), 8 * X)


def test_a_function_that_calls_itself_is_refused() -> None:
    endless = helper.make_function(
        "own", "Endless", ["x"], ["y"], [helper.make_node("Endless", ["x"], ["y"], domain="own")], OPSETS
    )
    with pytest.raises(UnsupportedGraphError, match="more than 64 graphs and functions lie within one another"):
        load(model(helper.make_node("Endless", ["x"], ["y"], domain="own"), functions=[endless]))


def test_functions_that_unroll_without_end_meet_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scope.MAX_RUN == 100_000
    monkeypatch.setattr(scope, "MAX_RUN", 10_000)

    def doubling(level: int) -> FunctionProto:
        inner = f"F{level - 1}" if level else "Neg"
        domain = "own" if level else ""
        nodes = [
            helper.make_node(inner, ["x"], ["t"], domain=domain),
            helper.make_node(inner, ["t"], ["y"], domain=domain),
        ]
        return helper.make_function("own", f"F{level}", ["x"], ["y"], nodes, OPSETS)

    call = helper.make_node("F40", ["x"], ["y"], domain="own")
    with pytest.raises(LimitExceededError, match="unroll to more than 10000 nodes"):
        load(model(call, functions=[doubling(level) for level in range(41)]))


def test_an_attribute_of_another_type_is_refused() -> None:
    call = helper.make_node("Scaled", ["x", "x"], ["y"], domain="own", slope=1)
    with pytest.raises(InvalidGraphError, match="the attribute alpha refers to slope, which is of another type"):
        load(model(call, functions=[scaled()]))


def test_an_unknown_operator_of_a_body_is_named_with_its_way() -> None:
    odd = helper.make_function("own", "Odd", ["x"], ["y"], [helper.make_node("Strange", ["x"], ["y"])], OPSETS)
    with pytest.raises(UnsupportedGraphError, match=r"Strange #0/#0: the operator ai\.onnx\.Strange is not supported"):
        load(model(helper.make_node("Odd", ["x"], ["y"], domain="own"), functions=[odd]))


def test_an_operator_without_an_importer_is_read_by_the_body_of_its_schema() -> None:
    swish = helper.make_node("Swish", ["x"], ["y"])
    proto = model(swish, functions=[])
    proto.opset_import[0].version = 24
    np.testing.assert_allclose(result(proto), X / (1 + np.exp(-X)), rtol=1e-6)

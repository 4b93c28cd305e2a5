"""A node that does not fit its operands is named, whatever Python and NumPy make of it, and takes no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tests.frontends.onnx.single_nodes import assert_agrees, of_nodes

Array = np.ndarray[Any, Any]
ARRAYS: dict[str, Array] = {
    "x": np.ones((2, 3), np.float32),
    "image": np.ones((1, 4, 9), np.float32),
    "scalar": np.array(1, np.float32),
    "a": np.ones((2, 3), np.float32),
    "b": np.ones((2, 4), np.float32),
    "kernel": np.ones((4, 4, 3), np.float32),
    "zero": np.array([0]),
    "seven": np.array([7]),
    "twice": np.array([0, 0]),
    "minus": np.array([2, -3]),
    "square": np.array([[2, 3]]),
    "floats": np.array([3.0, 2.0], np.float32),
    "words": np.array(["3", "2"], object),
    "huge": np.array([1 << 40]),
}
INPUTS = ("x", "image", "scalar")


def loaded(*nodes: NodeProto) -> Any:
    names = {name for node in nodes for name in node.input} & ARRAYS.keys()
    return load(
        of_nodes(
            nodes,
            {name: ARRAYS[name] for name in INPUTS if name in names},
            {name: ARRAYS[name] for name in ARRAYS if name in names and name not in INPUTS},
        )
    )


def node(op: str, inputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), ["y"], name="it", **attributes)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (node("Add", "a b"), "broadcast"),
        (node("Reshape", "a seven"), "cannot reshape"),
        (node("Reshape", "x square"), "rank 1, not 2"),
        (node("Reshape", "x floats"), r"input 1 is a tensor\(float\)"),
        (node("Reshape", "x words"), r"input 1 is a tensor\(string\)"),
        (node("Transpose", "a", perm=[0, 0]), "repeated axis"),
        (node("Unsqueeze", "a seven"), "axis 7"),
        (node("Unsqueeze", "a twice"), "repeated axis"),
        (node("Squeeze", "a zero"), "not equal to one"),
        (node("Concat", "a b", axis=0), "must match"),
        (node("Concat", "a a", axis=4), "axis 4"),
        (node("Concat", "a zero", axis=0), "beside"),
        (node("Gather", "a zero", axis=5), "axis 5"),
        (node("Gather", "a floats"), r"input 1 is a tensor\(float\)"),
        *((node(op, ""), "input 0 is missing") for op in ("Sum", "Max", "Mean")),
        (node("Concat", "", axis=0), "input 0 is missing"),
        (node("Conv", "x a"), "no spatial axes"),
        (node("ConvTranspose", "image kernel", group=0), "group 0"),
        (node("LayerNormalization", "scalar scalar"), "axis -1"),
        (node("Slice", "x zero twice"), "1 starts, 2 ends"),
        (node("Split", "x", num_outputs=1 << 40), "1099511627776 parts"),
        (node("ConstantOfShape", "minus"), "negative"),
        (node("ConstantOfShape", "zero", value=numpy_helper.from_array(ARRAYS["a"])), "size 6"),
        (node("Cast", "x", to=999), "element type 999"),
        (node("Cast", "a", to=0), "element type 0"),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else value,
)
def test_a_node_that_does_not_fit_is_named(broken: NodeProto, message: str):
    with pytest.raises(InvalidGraphError, match=rf"{broken.op_type} it: .*{message}"):
        loaded(broken)


def test_a_cast_to_strings_is_refused():
    with pytest.raises(UnsupportedGraphError, match=r"Cast it: .*string"):
        loaded(node("Cast", "zero", to=TensorProto.STRING))


def test_a_constant_beyond_the_limits_is_refused_before_it_is_made():
    with pytest.raises(LimitExceededError, match="buffer bytes"):
        loaded(node("ConstantOfShape", "huge"))


@pytest.mark.parametrize("op", ["Add", "Gather", "Concat", "ConcatFromSequence"])
def test_large_results_of_small_weights_are_not_folded(op: str):
    weights: dict[str, Array] = {
        "Add": {"a": np.ones((1 << 15, 1), np.int8), "b": np.ones((1, 1 << 15), np.int8)},
        "Gather": {"a": np.ones((1, 1 << 15), np.int8), "b": np.zeros(1 << 15, np.int32)},
        "Concat": {"a": np.ones(1 << 25, np.int8), "b": np.ones(1, np.int8)},
    }[op.removesuffix("FromSequence")]
    attributes: dict[str, Any] = {"axis": 0} if "Concat" in op else {}
    inputs = ["a", "b"] if "Concat" not in op else ["a"] * 9
    nodes = [helper.make_node(op, inputs, ["y"], **attributes)]
    if op == "ConcatFromSequence":
        nodes = [helper.make_node("SequenceConstruct", inputs, ["s"]), helper.make_node(op, ["s"], ["y"], **attributes)]
    proto = of_nodes(nodes, {"x": ARRAYS["x"]}, weights)
    model = load(proto)
    assert {array.size for array in model.parameters.values()} <= {array.size for array in weights.values()}
    assert model.graph.types[model.outputs["y"]].shape[0] in (1 << 15, 9 << 25)


@pytest.mark.parametrize("op", ["Div", "Mul"])
def test_weights_are_computed_with_as_a_graph_would_and_without_warnings(op: str):
    kinds = {
        np.int8: ([-128, -128, 7, -7, 7], [3, -1, -3, 3, 2]),
        np.uint8: ([255, 200], [2, 3]),
        np.float32: ([1, 3e38, -1], [0, 1e-30, 0]),
    }
    for dtype, (left, right) in kinds.items():
        x = np.zeros(len(left), dtype)
        weights = {"a": np.array(left, dtype), "b": np.array(right, dtype)}
        nodes = [helper.make_node(op, ["a", "b"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
        with np.errstate(all="ignore"):
            assert_agrees(of_nodes(nodes, {"x": x}, weights), {"x": x})


def test_an_input_may_have_the_name_of_a_parameter():
    x = np.ones(3, np.float32)
    nodes = [helper.make_node("Add", ["parameters/0", "w"], ["y"])]
    assert_agrees(of_nodes(nodes, {"parameters/0": x}, {"w": x * 2}), {"parameters/0": x})

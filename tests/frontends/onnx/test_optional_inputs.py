"""An optional input that is left out before one that is given: each is found by its position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from tensorkiln.frontends.onnx import load
from tests.frontends.onnx.single_nodes import assert_agrees, of_nodes

X = np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32)
WEIGHTS: dict[str, np.ndarray[Any, Any]] = {
    "a": X * 2,
    "starts": np.array([0, 0]),
    "ends": np.array([4, 6]),
    "steps": np.array([1, 2]),
    "limit": np.array(0.5, np.float32),
    "pads": np.array([1, 2]),
    "last": np.array([-1]),
    "scale": np.ones(8, np.float32),
    "no": np.array(False),
}


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Slice", ["x", "starts", "ends", "", "steps"], ["y"]),
        helper.make_node("Clip", ["x", "", "limit"], ["y"]),
        helper.make_node("Pad", ["x", "pads", "", "last"], ["y"]),
        helper.make_node("Dropout", ["x", "", "no"], ["y"]),
        helper.make_node("LayerNormalization", ["x", "scale", ""], ["y"]),
        helper.make_node("ReduceSum", ["x", ""], ["y"]),
    ],
    ids=lambda node: node.op_type,
)
def test_an_input_after_one_that_is_left_out_keeps_its_place(node: NodeProto):
    assert_agrees(of_nodes([node], {"x": X}, WEIGHTS), {"x": X})


def test_a_slice_of_weights_without_axes_has_its_steps():
    nodes = [
        helper.make_node("Slice", ["a", "starts", "ends", "", "steps"], ["part"]),
        helper.make_node("Add", ["x", "part"], ["y"]),
    ]
    x = X[:, :3]
    proto = of_nodes(nodes, {"x": x}, WEIGHTS)
    assert_agrees(proto, {"x": x})
    (array,) = load(proto).parameters.values()
    assert array.shape == (4, 3, 8)


def test_the_limits_of_a_clip_are_constants():
    limits = {"low": np.array(-0.5, np.float32), "high": np.array([0.25], np.float32)}
    proto = of_nodes([helper.make_node("Clip", ["x", "low", "high"], ["y"])], {"x": X}, limits)
    assert_agrees(proto, {"x": X})
    assert load(proto).parameters == {}

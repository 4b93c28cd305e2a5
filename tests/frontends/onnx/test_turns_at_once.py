"""Scans whose turns do not need each other are one turn, of any number of elements; others are unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

KEPT, SCANNED = (np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in ((4, 3), (5, 3)))
AWAY = helper.make_node("Sub", ["state", "element"], ["away"])


def _reduced(op: str, source: str, result: str, axis: int) -> NodeProto:
    return helper.make_node(op, [source, f"axis{axis}"], [result], keepdims=0)


def _scan(nodes: list[NodeProto], carried: str = "state", **attributes: Any) -> ModelProto:
    axes = [numpy_helper.from_array(np.asarray([axis]), f"axis{axis}") for axis in (-1, 0, 1)]
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", [carried], ["kept"])],
        "turn",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("state", "element")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("kept", "found")],
        [*axes, numpy_helper.from_array(np.asarray([1.5], np.float32), "power")],
    )
    graph = helper.make_graph(
        [helper.make_node("Scan", ["k", "s"], ["state", "y"], num_scan_inputs=1, body=body, **attributes)],
        "scan",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, 3])
            for name, dim in (("k", "rows"), ("s", "turns"))
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(
    ("nodes", "axis"),
    [
        ([AWAY, _reduced("ReduceSumSquare", "away", "found", 1)], 0),
        ([AWAY, _reduced("ReduceMax", "away", "found", 0)], 1),
        (
            [
                AWAY,
                helper.make_node("Abs", ["away"], ["size"]),
                helper.make_node("Pow", ["size", "power"], ["raised"]),
                _reduced("ReduceSum", "raised", "found", 1),
            ],
            0,
        ),
        ([_reduced("ReduceSum", "state", "found", 1)], 0),
        ([AWAY, helper.make_node("Identity", ["away"], ["found"])], -1),
    ],
)
def test_any_number_of_turns_that_do_not_need_each_other(nodes: list[NodeProto], axis: int):
    # The evaluator of onnx collects along the first axis only.
    expected: Any = ReferenceEvaluator(_scan(nodes)).run(None, {"k": KEPT, "s": SCANNED})
    model = load(_scan(nodes, scan_output_axes=[axis]), symbols={"rows": (1, 8), "turns": (1, 8)})
    (actual,) = evaluate(model.graph, *model.arguments(k=KEPT, s=SCANNED), rows=4, turns=5)
    np.testing.assert_allclose(actual, np.moveaxis(expected[0], 0, axis), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "carried"),
    [
        ([AWAY, _reduced("ReduceSum", "away", "found", -1)], "state"),
        ([AWAY, helper.make_node("Softmax", ["away"], ["found"], axis=1)], "state"),
        ([AWAY, helper.make_node("Identity", ["away"], ["found"])], "away"),
    ],
)
def test_turns_that_may_need_each_other_are_unrolled(nodes: list[NodeProto], carried: str):
    proto = _scan(nodes, carried)
    with pytest.raises(UnsupportedGraphError, match="the scanned axis has turns elements, which depends on symbols"):
        load(proto, symbols={"rows": (1, 8), "turns": (1, 8)})
    expected: Any = ReferenceEvaluator(proto).run(None, {"k": KEPT, "s": SCANNED})
    model = load(proto, symbols={"rows": (1, 8), "turns": 5})
    (actual,) = evaluate(model.graph, *model.arguments(k=KEPT, s=SCANNED), rows=4)
    np.testing.assert_allclose(actual, expected[0], rtol=1e-5, atol=1e-6)

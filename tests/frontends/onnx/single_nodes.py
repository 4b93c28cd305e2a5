"""Models of a few nodes over given arrays, and what onnx's own evaluator makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]
NEWEST = 23


def of_nodes(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array] | None = None,
    opset: int = NEWEST,
) -> ModelProto:
    """A model with the inputs' types and shapes, the weights, and the first output of the last node."""
    graph = helper.make_graph(
        list(nodes),
        "nodes",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(nodes[-1].output[0], 0, None)],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def assert_agrees(proto: ModelProto, inputs: Mapping[str, Array]) -> None:
    """The import gives what onnx's evaluator gives, in the same type and shape."""
    expected: Any
    (expected,) = ReferenceEvaluator(proto).run(None, dict(inputs))
    model = load(proto)
    (actual,) = evaluate(model.graph, *model.arguments(**inputs))
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)

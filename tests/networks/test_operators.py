"""The fast operators give what those of onnx give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

from tests.networks.operators import AveragePool, Conv, MaxPool

HEADER = '<ir_version: 8, opset_import: ["" : 9]> g'


def convolution(attributes: str, weight: str) -> ModelProto:
    return parser.parse_model(
        f"{HEADER} (float[2,4,9,8] x, float[{weight}] w, float[6] b) => (float y) {{ y = Conv<{attributes}>(x, w, b) }}"
    )


def pooling(operator: str, attributes: str) -> ModelProto:
    return parser.parse_model(f"{HEADER} (float[2,4,9,8] x) => (float y) {{ y = {operator}<{attributes}>(x) }}")


def agree(model: ModelProto) -> None:
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        entry.name: rng.standard_normal([dim.dim_value for dim in entry.type.tensor_type.shape.dim]).astype(np.float32)
        for entry in model.graph.input
    }
    actual: Any
    expected: Any
    (actual,) = ReferenceEvaluator(model, new_ops=[Conv, MaxPool, AveragePool]).run(None, feeds)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("attributes", ["", "strides = [2, 2]", "pads = [1, 1, 1, 1]", "pads = [0, 1, 2, 0]"])
def test_convolution_is_onnxs(attributes: str, group: int) -> None:
    given = ", ".join(filter(None, ["kernel_shape = [3, 3]", f"group = {group}", attributes]))
    agree(convolution(given, f"6,{4 // group},3,3"))


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("attributes", ["", "strides = [2, 2]", "pads = [1, 1, 1, 1]", "pads = [0, 1, 1, 0]"])
def test_pooling_is_onnxs(operator: str, attributes: str) -> None:
    agree(pooling(operator, ", ".join(filter(None, ["kernel_shape = [3, 2]", attributes]))))


@pytest.mark.parametrize("attributes", ["dilations = [2, 2]", 'auto_pad = "SAME_UPPER"'])
def test_an_attribute_that_the_networks_do_not_use_is_refused(attributes: str) -> None:
    model = convolution(f"kernel_shape = [3, 3], {attributes}", "6,4,3,3")
    with pytest.raises(ValueError, match="is not among what these networks use"):
        agree(model)

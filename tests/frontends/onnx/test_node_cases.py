"""Every operator against the cases of the onnx package, evaluated by the reference."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.case.test_case import TestCase

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import OPERATORS
from tensorkiln.reference import evaluate
from tests.frontends.onnx.node_cases import arrays_of, cases_by_operator, imported

NETWORK_OPERATORS = [
    *("Add", "AveragePool", "BatchNormalization", "Concat", "ConstantOfShape", "Conv", "Dropout", "Gemm"),
    *("GlobalAveragePool", "LRN", "MaxPool", "Mul", "Relu", "Reshape", "Softmax", "Sum", "Transpose", "Unsqueeze"),
]
REFUSED = {
    "BatchNormalization": "training",
    "Cast": r"(FLOAT8|FLOAT4|INT4|INT2)",
    "ConvTranspose": r"(output_shape|kernel_shape|autopad_same)",
    "Dropout": "training",
    "Einsum": r"(transpose|sum|diagonal|inner_prod|scalar)",
    "Equal": "string",
    "Identity": r"(sequence|opt)",
    "MaxPool": "argmax",
    "Not": "not_",
}
"""What the names of the cases say that we refuse: element types, optional outputs, training, opsets below 6."""


@pytest.mark.parametrize("operator", sorted(OPERATORS))
@pytest.mark.filterwarnings("ignore")  # Generating the cases divides by zero and overflows on purpose.
def test_an_operator_gives_the_expected_outputs_or_is_refused_by_name(operator: str):
    passed: list[str] = []
    for case in cases_by_operator()[operator]:
        try:
            check(case)
            passed.append(case.name)
        except UnsupportedGraphError:
            assert operator in REFUSED, case.name
            assert re.search(REFUSED[operator], case.name), case.name
    assert passed or operator == "Not"


@pytest.mark.parametrize("operator", NETWORK_OPERATORS)
def test_the_operators_of_the_light_networks_are_all_there(operator: str):
    assert operator in OPERATORS


def check(case: TestCase) -> None:
    inputs, expected = arrays_of(case)
    model, free = imported(case, inputs)
    actual = evaluate(model.graph, *model.arguments(**free))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype, case.name
        np.testing.assert_allclose(wide(ours), wide(theirs), rtol=case.rtol, atol=case.atol, err_msg=case.name)


def wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bfloat16 as float32, which NumPy can compare."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array

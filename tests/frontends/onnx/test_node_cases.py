"""Every node case of the onnx package: the expected outputs by the reference, or a refusal by name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx.defs import get_all_schemas

from tensorkiln.frontends.onnx import OPERATORS
from tests import checked
from tests.compiled import compiled
from tests.frontends.onnx.conformance import arrays_of, cases, cases_by_operator, difference, imported, outcome

NETWORK_OPERATORS = [
    *("Add", "AveragePool", "BatchNormalization", "Concat", "ConstantOfShape", "Conv", "Dropout", "Gemm"),
    *("GlobalAveragePool", "LRN", "MaxPool", "Mul", "Relu", "Reshape", "Softmax", "Sum", "Transpose", "Unsqueeze"),
]
NARROW = r"element type float8_e8m0fnu"
TEXT = r"element type object|string"
REFUSED = {
    "Cast": NARROW,
    "Equal": TEXT,
    "LabelEncoder": TEXT,
    "Not": "opset 1",
    "Scan": "opset 8",
}
"""What operators that an import knows refuse of their cases."""
MISSING = {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
"""Operators that are refused."""
WITHOUT_CASES = {
    *("CastMap", "CategoryMapper", "ConcatFromSequence", "DictVectorizer", "FeatureVectorizer", "GlobalLpPool"),
    *("Gradient", "Imputer", "LinearClassifier", "LinearRegressor", "MaxRoiPool", "Multinomial", "Normalizer"),
    *("OneHotEncoder", "Optional", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("SVMClassifier", "SVMRegressor", "Scaler", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase"),
    *("SequenceLength", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap"),
}
WITH_CASES = sorted({schema.name for schema in get_all_schemas()} - WITHOUT_CASES)
"""Operators of the package that have cases: to generate these takes ten seconds, which collecting tests need not."""
COMPILED = [
    *(
        "test_attention_4d_causal",
        "test_affine_grid_2d",
        "test_center_crop_pad_crop_axes_chw",
        "test_cumsum_1d_reverse",
    ),
    *(
        "test_acos",
        "test_asinh",
        "test_atan",
        "test_dequantizelinear_axis",
        "test_dft_axis",
        "test_einsum_batch_diagonal",
    ),
    *("test_gathernd_example_int32", "test_gridsample_bicubic", "test_gru_with_initial_bias", "test_hardmax_axis_0"),
    *("test_lstm_defaults", "test_maxpool_with_argmax_2d_precomputed_pads", "test_onehot_with_axis"),
    *(
        "test_qlinearconv",
        "test_qlinearmatmul_2D_uint8_float32",
        "test_quantizelinear_axis",
        "test_range_float_type_positive_delta",
    ),
    *("test_resize_upsample_scales_cubic", "test_rms_normalization_2d_axis0", "test_rotary_embedding"),
    *("test_scatter_elements_with_reduction_max", "test_scatternd_add", "test_sce_mean_weight_ii", "test_top_k"),
    *("test_tril_neg", "test_scan9_sum", "test_col2im_pads", "test_convtranspose_autopad_same"),
]
"""A case of each family, which is compiled and run."""


def test_every_operator_that_has_cases_is_here() -> None:
    assert sorted(cases_by_operator()) == WITH_CASES


@pytest.mark.parametrize("operator", WITH_CASES)
@pytest.mark.filterwarnings("ignore")  # Generating the cases divides by zero and overflows on purpose.
def test_an_operator_gives_the_expected_outputs_or_is_refused_by_name(operator: str) -> None:
    for case in cases_by_operator()[operator]:
        found = outcome(case)
        assert found.kind in ("passed", "refused"), f"{case.name}: {found.kind}, {found.reason}"
        if operator in MISSING:
            assert found.kind == "refused", f"{case.name} passes: {operator} is missing no more"
        elif found.kind == "refused":
            assert operator in REFUSED, f"{case.name}: {found.reason}"
            assert re.search(REFUSED[operator], found.reason), f"{case.name}: {found.reason}"


@pytest.mark.parametrize("operator", NETWORK_OPERATORS)
def test_the_operators_of_the_light_networks_are_all_there(operator: str) -> None:
    assert operator in OPERATORS


@pytest.mark.parametrize("name", COMPILED)
def test_a_case_of_each_family_gives_its_outputs_when_it_is_compiled(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    inputs, expected = arrays_of(case)
    model, free = imported(case, inputs)
    actual = checked.run(compiled(model.graph), *model.arguments(**free))
    assert difference([np.asarray(result) for result in actual], expected, case) == ""

"""Operators of ai.onnx.ml beside onnx's own evaluator, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.errors import TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]
X = np.array([[0.1, 0.2, 0.3], [0.5, 0.1, 0], [0, 0, 0], [0.9, -0.3, 0.2]], np.float32)
HOLED = np.array([[np.nan, 0.2, 0.3], [0.5, np.nan, 0], [0.3, 0.15, 0.1]], np.float32)
NODES = {
    "nodes_treeids": [4, 4, 4, 4, 4, 9, 9, 9],
    "nodes_nodeids": [0, 1, 2, 3, 7, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_values": [0.3, 0.15, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [7, 3, 0, 0, 0, 2, 0, 0],
}
"""Two trees of five leaves."""
LEAVES = ([4, 4, 4, 9, 9], [2, 3, 7, 1, 2])
CYCLE: dict[str, Any] = {
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "BRANCH_LT", "LEAF"],
    "nodes_truenodeids": [2, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [7, 3, 0, 0, 0, 2, 2, 0],
}
WEIGHTS = [-0.1, 0.2, -0.3, 0.4, -0.5]
REGRESSION: dict[str, Any] = {
    **NODES,
    "target_treeids": LEAVES[0],
    "target_nodeids": LEAVES[1],
    "target_ids": [0] * 5,
    "target_weights": WEIGHTS,
    "n_targets": 1,
    "nodes_missing_value_tracks_true": [0] * 8,
}
CLASSES: dict[str, Any] = {
    **NODES,
    "class_treeids": LEAVES[0],
    "class_nodeids": LEAVES[1],
    "class_ids": [0, 1, 2, 1, 2],
    "class_weights": WEIGHTS,
    "classlabels_int64s": [5, 7, 9],
    "base_values": [0.2, 0.3, 0.1],
}
UNBASED = {name: CLASSES[name] for name in CLASSES if name != "base_values"}
MACHINE: dict[str, Any] = {
    "support_vectors": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    "coefficients": [0.5, -0.6, 0.7, 0.1, 0.2, -0.3],
    "vectors_per_class": [1, 1, 1],
    "kernel_params": [0.5, 0.1, 3.0],
    "rho": [0.1, 0.2, -0.1],
    "classlabels_ints": [5, 7, 9],
}
LINE: dict[str, Any] = {
    "coefficients": [0.5, 0.6, 0.7, 0.1, 0.2, 0.3, 0.0, 0.1, 0.4],
    "intercepts": [0.1, 0.2, 0.3],
    "classlabels_ints": [5, 7, 9],
}
SINGLE: dict[str, Any] = {
    "tree_roots": [0],
    "nodes_featureids": [0],
    "nodes_splits": numpy_helper.from_array(np.array([0.3], np.float32)),
    "nodes_modes": numpy_helper.from_array(np.array([0], np.uint8)),
    "nodes_truenodeids": [0],
    "nodes_trueleafs": [1],
    "nodes_falsenodeids": [1],
    "nodes_falseleafs": [1],
    "leaf_targetids": [0, 0],
    "leaf_weights": numpy_helper.from_array(np.array([1, 2], np.float32)),
}
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
CASES: list[tuple[str, list[Array], int, dict[str, Any]]] = [
    *(("LinearClassifier", [X], 1, {**LINE, "post_transform": how}) for how in TRANSFORMS),
    *(("TreeEnsembleClassifier", [X], 1, {**CLASSES, "post_transform": how}) for how in TRANSFORMS),
    *(("SVMClassifier", [X], 1, {**MACHINE, "kernel_type": kind}) for kind in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    ("LinearRegressor", [X], 1, {"coefficients": LINE["coefficients"], "intercepts": [1.0, 2.0, 3.0], "targets": 3}),
    *(
        ("TreeEnsembleRegressor", [X], 1, {**REGRESSION, "aggregate_function": how, "base_values": [0.5]})
        for how in ("SUM", "AVERAGE", "MIN", "MAX")
    ),
    ("TreeEnsembleRegressor", [HOLED], 1, REGRESSION),
    ("TreeEnsembleRegressor", [HOLED], 1, {**REGRESSION, "nodes_missing_value_tracks_true": [1, 1, 0, 0, 0, 1, 0, 0]}),
    (
        *("TreeEnsembleRegressor", [HOLED], 1),
        {
            **REGRESSION,
            "nodes_modes": ["BRANCH_EQ", "BRANCH_GTE", "LEAF", "LEAF", "LEAF", "BRANCH_NEQ", "LEAF", "LEAF"],
        },
    ),
    (
        *("SVMRegressor", [X], 1),
        {
            **{name: MACHINE[name] for name in ("support_vectors", "kernel_params")},
            **dict(coefficients=[0.5, -0.6, 0.7], n_supports=3, kernel_type="RBF", rho=[-0.1], one_class=1),
        },
    ),
    ("Scaler", [X], 1, {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 0.25, 2.0]}),
    ("Normalizer", [X], 1, {"norm": "L1"}),
    ("Normalizer", [X], 1, {"norm": "L2"}),
    ("Normalizer", [np.abs(X)], 1, {"norm": "MAX"}),
    ("Binarizer", [X], 1, {"threshold": 0.15}),
    ("Imputer", [HOLED], 1, {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": float("nan")}),
    ("Imputer", [np.arange(6).reshape(2, 3)], 1, {"imputed_value_int64s": [7], "replaced_value_int64": 4}),
    ("ArrayFeatureExtractor", [X, np.array([2, 0])], 1, {}),
    ("ArrayFeatureExtractor", [X[0], np.array([[2, 0]])], 1, {}),
    ("FeatureVectorizer", [X, X[:, :2]], 1, {"inputdimensions": [2, 4]}),
    ("OneHotEncoder", [np.array([[5, 7], [1, 6]])], 1, {"cats_int64s": [1, 5, 7]}),
    (
        "LabelEncoder",
        [np.array([1, 2, 5])],
        2,
        {"keys_int64s": [1, 5], "values_floats": [0.5, 0.7], "default_float": -2.0},
    ),
    ("LabelEncoder", [np.array([1, 2, 5])], 2, {"keys_int64s": [1, 5], "values_int64s": [8, 9], "default_int64": -2}),
]


def _model(op: str, inputs: Mapping[str, Array], version: int, attributes: Mapping[str, Any]) -> ModelProto:
    outputs = [f"y{place}" for place in range(len(defs.get_schema(op, version, "ai.onnx.ml").outputs))]
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), outputs, domain="ai.onnx.ml", **attributes)],
        "learned",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                ["count" if array.dtype == np.int64 and name == "x1" else "n", *array.shape[1:]],
            )
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize(("op", "inputs", "version", "attributes"), CASES)
def test_an_operator_agrees_with_the_evaluator_of_onnx(
    op: str, inputs: list[Array], version: int, attributes: dict[str, Any]
):
    named = {f"x{place}": array for place, array in enumerate(inputs)}
    model = _model(op, named, version, attributes)
    expected: Any = ReferenceEvaluator(model).run(None, named)
    loaded = load(model, symbols={"n": (1, 8), "count": (1, 8)} if op == "ArrayFeatureExtractor" else {"n": (1, 8)})
    symbols = {"n": inputs[0].shape[0], "count": inputs[-1].shape[0]}
    actual = evaluate(
        loaded.graph, *loaded.arguments(**named), **{name: symbols[name] for name in loaded.graph.symbols}
    )
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        (
            "LinearClassifier",
            {"coefficients": [1.0] * 9, "classlabels_strings": ["a", "b", "c"]},
            "labels that are strings",
        ),
        ("LinearClassifier", {"coefficients": [1.0] * 8, "classlabels_ints": [0, 1]}, "do not fit rows of 3 features"),
        ("LinearRegressor", {"coefficients": [1.0] * 3, "post_transform": "LOGISTIC"}, "LOGISTIC of one target"),
        ("TreeEnsembleClassifier", {**CLASSES, "base_values": [0.1, 0.2]}, "2 base_values do not fit 3 targets"),
        ("TreeEnsembleClassifier", UNBASED, "do not count for all of them"),
        (
            "TreeEnsembleClassifier",
            {**UNBASED, "class_weights": [0.1, 0.0, 0.3, 0.0, 0.5]},
            "count 0 or less for classes, and do not count for all of them",
        ),
        ("TreeEnsembleClassifier", {**CLASSES, "class_ids": [0, 1, 3, 1, 2]}, "counts for the target 3 of 3"),
        ("TreeEnsembleRegressor", {**REGRESSION, "nodes_featureids": [9] * 8}, "asks for the feature 9"),
        ("TreeEnsembleRegressor", {**REGRESSION, "nodes_truenodeids": [0, 2, 0, 0, 0, 1, 0, 0]}, "leads to itself"),
        ("TreeEnsembleRegressor", {**REGRESSION, "nodes_modes": ["BRANCH"] * 8}, "'BRANCH' is not one of"),
        # The second tree is a cycle, the first has two roots: as many as there are trees.
        ("TreeEnsembleRegressor", {**REGRESSION, **CYCLE}, "no root, or more than one"),
        (
            *("TreeEnsembleRegressor", {**REGRESSION, "n_targets": 1 << 40}),
            "8 nodes of 1099511627776 targets are more than 268435456 weights",
        ),
        ("TreeEnsemble", {**SINGLE, "tree_roots": [1]}, "tree_roots has 1, and the nodes are 0 to 0"),
        ("TreeEnsemble", {**SINGLE, "tree_roots": [0, -1]}, "tree_roots has -1"),
        *(
            (
                "SVMClassifier",
                {**MACHINE, "kernel_type": "POLY", "kernel_params": [0.5, 0.1, degree]},
                f"degree {degree}",
            )
            for degree in (2.5, math.inf)
        ),
        (
            "SVMRegressor",
            {"coefficients": [1.0] * 3, "rho": [0.0], "post_transform": "SOFTMAX"},
            "SOFTMAX of one target",
        ),
        ("Scaler", {"offset": [1.0, 2.0]}, "2 values of offset do not fit 3 features"),
        ("LabelEncoder", {"classes_strings": ["a"]}, "gives strings"),
    ],
)
def test_mismatched_estimators_are_refused_by_name(op: str, attributes: dict[str, Any], message: str):
    x = np.array([[1]], np.int64) if op == "LabelEncoder" else X
    version = 5 if op == "TreeEnsemble" else 1
    with pytest.raises(TensorkilnError, match=message) as caught:
        load(_model(op, {"x": x}, version, attributes), symbols={"n": (1, 8)})
    assert f"{op} #0" in caught.value.message


def test_nodes_that_several_others_lead_to_are_looked_at_once():
    # Two nodes a level, each of which leads to both of the next: 2^100 ways to the leaves.
    count = 201
    levels = [(number + 1) // 2 for number in range(count)]
    attributes: dict[str, Any] = {
        "nodes_treeids": [0] * count,
        "nodes_nodeids": list(range(count)),
        "nodes_featureids": [level % 3 for level in levels],
        "nodes_modes": ["BRANCH_LEQ"] * (count - 2) + ["LEAF"] * 2,
        "nodes_values": [0.1] * count,
        "nodes_truenodeids": [2 * level + 1 for level in levels[:-2]] + [0, 0],
        "nodes_falsenodeids": [2 * level + 2 for level in levels[:-2]] + [0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [count - 2, count - 1],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "base_values": [0.5],
        "n_targets": 1,
    }
    model = load(_model("TreeEnsembleRegressor", {"x": X}, 1, attributes), symbols={"n": 4})
    (found,) = evaluate(model.graph, *model.arguments(x=X))
    np.testing.assert_array_equal(found[:, 0], np.where(X[:, levels[-3] % 3] <= 0.1, 1.5, 2.5))


def test_a_category_that_is_unknown_is_nan_where_onnx_has_the_operator_fail():
    x = np.array([5, 6])
    model = load(_model("OneHotEncoder", {"x": x}, 1, {"cats_int64s": [1, 5], "zeros": 0}), symbols={"n": 2})
    (found,) = evaluate(model.graph, *model.arguments(x=x))
    np.testing.assert_array_equal(found, [[0, 1], [np.nan, np.nan]])


def test_a_version_that_is_newer_than_the_installed_package_is_refused():
    newer = _model("Scaler", {"x": X}, 1, {"offset": [0.0], "scale": [1.0]})
    newer.opset_import[1].version = defs.onnx_ml_opset_version() + 1
    with pytest.raises(UnsupportedGraphError, match=r"version \d+ of ai\.onnx\.ml"):
        load(newer, symbols={"n": 4})


def test_maps_of_scores_are_the_table_of_these():
    model = _model("ZipMap", {"x": X}, 1, {"classlabels_int64s": [5, 7, 9]})
    loaded = load(model, symbols={"n": (1, 8)})
    (found,) = evaluate(loaded.graph, *loaded.arguments(x=X), n=4)
    np.testing.assert_array_equal(found, X)

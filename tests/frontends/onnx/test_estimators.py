"""What skl2onnx makes of estimators gives, for any number of rows, what scikit-learn and ONNX Runtime give.

The models and numbers are recorded: `tests/frontends/onnx/estimators` writes them.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled

Array = np.ndarray[Any, Any]
FILE = Path(__file__).parent / "files" / "estimators.zip"
TWENTY = {
    *("DecisionTreeClassifier", "DecisionTreeRegressor", "GaussianNB", "GradientBoostingClassifier"),
    *("GradientBoostingRegressor", "KMeans", "KNeighborsClassifier", "Lasso", "LinearRegression", "LinearSVC"),
    *("LogisticRegression", "MLPClassifier", "PCA", "RandomForestClassifier", "RandomForestRegressor", "Ridge"),
    *("SGDClassifier", "SVC", "SVR", "StandardScaler"),
}
TOLERANCE = {"SVC-poly": 1e-4, "SVC-poly-of-two": 1e-4}
"""Sums of large powers cancel: ONNX Runtime is farther from scikit-learn there than the reference is."""
COMPILED = ["RandomForestClassifier", "SVC", "KMeans"]


@cache
def _content() -> dict[str, dict[str, Any]]:
    """By estimator: its model, rows, and what others give for these."""
    found: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(FILE) as archive:
        for entry in archive.namelist():
            name, _, part = entry.partition("/")
            content = archive.read(entry)
            found.setdefault(name, {})[part] = np.load(io.BytesIO(content)) if part.endswith(".npy") else content
    return found


@pytest.mark.parametrize("name", sorted(_content()))
def test_an_estimator_gives_the_numbers_of_scikit_learn_and_of_onnx_runtime(name: str):
    recorded = _content()[name]
    x = recorded["x.npy"]
    model = load(recorded["model.onnx"], symbols={"X_0": (1, 64)})
    actual = evaluate(model.graph, *model.arguments(X=x), X_0=len(x))
    for place, ours in enumerate(actual):
        theirs = recorded[f"onnxruntime.{place}.npy"]
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        _assert_near(ours, theirs, TOLERANCE.get(name, 1e-5))
        if (learned := recorded.get(f"sklearn.{place}.npy")) is not None:
            # Of two classes scikit-learn has one score, the converted model its negative beside it.
            column = 0 if name.startswith("SVC") else -1
            _assert_near(ours[:, column] if learned.ndim < ours.ndim else ours, learned, 2e-4)


def _assert_near(ours: Array, theirs: Array, tolerance: float) -> None:
    if theirs.dtype.kind in "iu":
        assert ours.tolist() == theirs.tolist()
    else:
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1, np.abs(theirs).max()))


def test_the_twenty_commonest_estimators_are_among_them():
    assert _content().keys() >= TWENTY | {"pipeline", "pipeline-of-four"}


@pytest.mark.parametrize("name", COMPILED)
def test_an_estimator_that_is_compiled_gives_the_same_numbers(name: str):
    recorded = _content()[name]
    x = recorded["x.npy"]
    model = load(recorded["model.onnx"], symbols={"X_0": (1, 64)})
    for place, ours in enumerate(checked.run(compiled(model.graph), *model.arguments(X=x), X_0=len(x))):
        _assert_near(np.asarray(ours), recorded[f"onnxruntime.{place}.npy"], 1e-5)

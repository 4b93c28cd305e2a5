"""Linear models: one product with the coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Absent, Value
from .scores import best, both, label_count, labels, numbers, regressed, rows, transformed


def _scores(node: Node, x: Tensor, targets: int | None) -> Tensor:
    """Scores (rows, targets). With `targets` None, the coefficients determine the number of targets."""
    features = x.shape[1]
    coefficients = np.asarray(node.numbers("coefficients"))
    if not isinstance(features, int):
        node.fail(f"how many features a row has is {features}, which depends on symbols")
    if coefficients.size != (targets or max(coefficients.size // max(features, 1), 1)) * features:
        node.invalid(f"{coefficients.size} coefficients do not fit rows of {features} features")
    weights = np.ascontiguousarray(coefficients.reshape(-1, features).T).astype(x.dtype.numpy)
    scores = x @ node.parameter(weights)
    intercepts = node.numbers("intercepts", [])
    return scores + node.parameter(np.asarray(intercepts, x.dtype.numpy)) if intercepts else scores


def linear_regressor(node: Node) -> Value:
    x = rows(node, numbers(node))
    return regressed(node, _scores(node, x, node.integer("targets", 1))).cast(DType.FLOAT32)


def linear_classifier(node: Node) -> Sequence[Value | Absent]:
    """Classification with one row of coefficients per class, or a single row for the second of two classes."""
    node.ignore("multi_class")
    scores = _scores(node, rows(node, numbers(node)), None)
    count = label_count(node, "classlabels_ints")
    if scores.shape[1] == count and count > 1:
        found = labels(node, "classlabels_ints", best(scores))
        return [found, transformed(node, scores).cast(DType.FLOAT32)]
    if scores.shape[1] != 1 or count != 2:
        node.fail(f"coefficients of {scores.shape[1]} classes do not fit {count} labels")
    found = labels(node, "classlabels_ints", (scores[:, 0] > 0.0).cast(DType.INT64))
    return [found, both(node, scores, True).cast(DType.FLOAT32)]


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
}

"""Support vector machines: kernels between rows and support vectors, and one product with their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Absent, Host, Value
from .coupling import coupled
from .scores import best, both, label_count, labels, numbers, regressed, rows, transformed

CLAMP = 1e-7
"""Pairwise probabilities are clipped to [CLAMP, 1 - CLAMP], as in libsvm."""


def _kernels(node: Node, x: Tensor, vectors: Host) -> Tensor:
    """(rows, vectors): the kernel of each row of `x` with each row of `vectors`."""
    kind = node.choice("kernel_type", ("LINEAR", "POLY", "RBF", "SIGMOID"), "LINEAR")
    gamma, constant, degree = node.numbers("kernel_params", [0.0, 0.0, 0.0])
    if kind == "POLY" and not degree.is_integer():
        node.fail(f"kernel_params have the degree {degree} of a polynomial, and only whole ones are supported")
    dtype = x.dtype.numpy
    if kind == "RBF":
        away = x.unsqueeze(1) - node.parameter(vectors.astype(dtype))
        return build.exp((away * away).sum([-1]) * -gamma)
    dots = x @ node.parameter(np.ascontiguousarray(vectors.T).astype(dtype))
    if kind == "LINEAR":
        return dots
    moved = dots * gamma + constant
    return build.tanh(moved) if kind == "SIGMOID" else build.power(moved, int(degree))


def _linear(node: Node, x: Tensor, coefficients: Host) -> Tensor:
    """Scores without support vectors: `coefficients` is (scores, features)."""
    node.ignore("kernel_type", "kernel_params")
    weights = np.ascontiguousarray(coefficients.T).astype(x.dtype.numpy)
    return x @ node.parameter(weights) + node.numbers("rho")[0]


def svm_regressor(node: Node) -> Value:
    x = rows(node, numbers(node))
    coefficients, count = np.asarray(node.numbers("coefficients")), node.integer("n_supports", 0)
    node.integer("n_targets", 1)
    if count:
        vectors = np.asarray(node.numbers("support_vectors")).reshape(count, -1)
        weights = coefficients.reshape(count, 1).astype(x.dtype.numpy)
        score = _kernels(node, x, vectors) @ node.parameter(weights) + node.numbers("rho")[0]
    else:
        node.ignore("support_vectors")
        score = _linear(node, x, coefficients.reshape(1, -1))
    if node.integer("one_class", 0):
        score = build.where(score > 0.0, 1.0, build.full(node.builder, (), -1.0, score.dtype))
    return regressed(node, score).cast(DType.FLOAT32)


def svm_classifier(node: Node) -> Sequence[Value | Absent]:
    """Classification by a vote of each pair of classes; the second output holds scores or probabilities."""
    x = rows(node, numbers(node))
    count = label_count(node, "classlabels_ints")
    sizes = node.integers("vectors_per_class", [])
    coefficients = np.asarray(node.numbers("coefficients"))
    if not sum(sizes):
        node.ignore("support_vectors", "prob_a", "prob_b")
        if count == 2:
            node.fail("two classes without support vectors are not supported")
        scores = _linear(node, x, coefficients.reshape(count, -1))
        found = labels(node, "classlabels_ints", best(scores))
        return [found, transformed(node, scores).cast(DType.FLOAT32)]
    if len(sizes) != count:
        node.invalid(f"vectors of {len(sizes)} classes do not fit {count} labels")
    vectors = np.asarray(node.numbers("support_vectors")).reshape(sum(sizes), -1)
    pairs = list(combinations(range(count), 2))
    rho = np.asarray(node.numbers("rho"), x.dtype.numpy)
    weights = _by_pair(coefficients.reshape(count - 1, -1), sizes, pairs).astype(x.dtype.numpy)
    scores = _kernels(node, x, vectors) @ node.parameter(weights) + node.parameter(rho)
    # As in libsvm, the votes determine the label even if there are probabilities.
    found = labels(node, "classlabels_ints", best(_votes(node, scores, count, pairs)))
    if node.numbers("prob_a", []):
        shown = transformed(node, _probabilities(node, scores, count))
    else:
        node.ignore("prob_b")
        shown = both(node, scores, False) if count == 2 else transformed(node, scores)
    return [found, shown.cast(DType.FLOAT32)]


def _by_pair(coefficients: Host, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Host:
    """The weights (vectors, pairs) from libsvm's coefficients (classes - 1, vectors).

    A vector's column has its coefficients against the other classes, in order.
    """
    starts = np.cumsum([0, *sizes])
    weights = np.zeros((starts[-1], len(pairs)))
    for place, (first, second) in enumerate(pairs):
        own, other = slice(*starts[first : first + 2]), slice(*starts[second : second + 2])
        weights[own, place] = coefficients[second - 1, own]
        weights[other, place] = coefficients[first, other]
    return weights


def _votes(node: Node, scores: Tensor, count: int, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Votes (rows, classes): a pair votes for its first class if its score is positive, else for its second."""
    first, second = np.zeros((len(pairs), count)), np.zeros((len(pairs), count))
    for place, (one, other) in enumerate(pairs):
        first[place, one] = second[place, other] = 1
    dtype = scores.dtype.numpy
    is_first = (scores > 0.0).cast(scores.dtype)
    return is_first @ node.parameter(first.astype(dtype)) + (1.0 - is_first) @ node.parameter(second.astype(dtype))


def _probabilities(node: Node, scores: Tensor, count: int) -> Tensor:
    """Class probabilities by Platt scaling: a sigmoid of the score of each pair, then `coupled`."""
    slopes, offsets = (np.asarray(node.numbers(name), scores.dtype.numpy) for name in ("prob_a", "prob_b"))
    logits = scores * node.parameter(slopes) + node.parameter(offsets)
    return coupled(build.clip(build.sigmoid(-logits), CLAMP, 1 - CLAMP), count)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
}

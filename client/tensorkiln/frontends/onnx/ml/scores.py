"""Probabilities and labels from the scores of classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Absent, Value

NEAR_ZERO: Final = 1e-7
"""`SOFTMAX_ZERO` treats scores up to this magnitude as 0."""
_WINITZKI: Final = 0.147


def numbers(node: Node, position: int = 0) -> Tensor:
    """An input as float64 if it is that, else as float32."""
    x = node.tensor(position)
    return x if x.dtype is DType.FLOAT64 else x.cast(DType.FLOAT32)


def rows(node: Node, x: Tensor) -> Tensor:
    """`x` as a matrix with one example per row; a vector is one example."""
    if x.rank == 1:
        return x.unsqueeze(0)
    return x if x.rank == 2 else node.invalid(f"examples are the rows of a matrix, not of rank {x.rank}")


def transformed(node: Node, scores: Tensor, how: str | None = None) -> Tensor:
    """Apply `how`, by default the node's `post_transform`, to scores (examples, classes)."""
    return _TRANSFORMS[how or transform(node)](scores)


def transform(node: Node) -> str:
    """The node's `post_transform`."""
    return node.choice("post_transform", _TRANSFORMS, "NONE")


def _softmax_zero(scores: Tensor) -> Tensor:
    """Softmax that, as in ONNX Runtime, replaces the exponential of a zero score by e^-max times the score."""
    most = scores.max([-1], keepdims=True)
    is_something = build.absolute(scores) > NEAR_ZERO
    parts = build.where(is_something, build.exp(scores - most), scores * build.exp(-most))
    total = parts.sum([-1], keepdims=True)
    return build.where(build.equal(total, 0.0), 0.5, parts / total)


def _probit(scores: Tensor) -> Tensor:
    """The quantile of the normal distribution by Winitzki's inverse of the error function, as ONNX Runtime has it."""
    x = scores * 2.0 - 1.0
    inside = (1.0 - x) * (1.0 + x)
    log = build.log(inside)
    v = log * 0.5 + 2.0 / (math.pi * _WINITZKI)
    root = build.sqrt(build.sqrt(v * v - log * (1.0 / _WINITZKI)) - v)
    found = build.where(x < 0.0, -root, root)
    # At the ends the logarithm is infinite, and so is the quantile.
    return build.where(build.equal(inside, 0.0), x * math.inf, found) * math.sqrt(2.0)


_TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": build.sigmoid,
    "SOFTMAX": lambda scores: build.softmax(scores, -1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def label_count(node: Node, numbers: str) -> int:
    """The number of class labels, integers or strings."""
    return max(len(node.integers(numbers, [])), len(node.strings("classlabels_strings", [])))


def labels(node: Node, numbers: str, position: Tensor) -> Value | Absent:
    """The labels of the classes at int64 positions; string labels are absent."""
    if node.strings("classlabels_strings", []):
        return Absent(
            f"{node.op} {node.name} gives labels that are strings, which graphs do not have; take this output out of "
            "the model, or fit with integers as labels"
        )
    return build.take(node.parameter(np.asarray(node.integers(numbers), np.int64)), position)


def best(scores: Tensor) -> Tensor:
    """The position of the first greatest score of each row, int64."""
    return build.argmax(scores, -1).cast(DType.INT64)


def both(node: Node, score: Tensor, is_probability: bool) -> Tensor:
    """Both columns (N, 2) of two classes, from the score (N, 1) of the second.

    The first class has 1 - score if the score is a probability, else -score. UnsupportedGraphError for a
    `post_transform` for which ONNX Runtime differs from the standard.
    """
    how = transform(node)
    if how == "LOGISTIC":
        return build.sigmoid(build.cat([-score, score], 1))
    if how != "NONE":
        node.fail(f"post_transform {how} of one score for two classes is not supported")
    return build.cat([1.0 - score if is_probability else -score, score], 1)


def regressed(node: Node, scores: Tensor) -> Tensor:
    """Apply the node's `post_transform` to the scores of a regression. UnsupportedGraphError for a single target."""
    if scores.shape[1] == 1 and transform(node) != "NONE":
        # ONNX Runtime does not transform a single target; the standard does not specify this case.
        node.fail(f"post_transform {transform(node)} of one target is not supported")
    return transformed(node, scores)

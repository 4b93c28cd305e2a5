"""Tree ensembles: all rows descend all trees at once, for the depth of the deepest tree, and stop at leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Absent, Value
from .forest import LESS, MISSING, MORE, OUTCOMES, SAME, Forest, floats, listed
from .scores import best, both, label_count, labels, numbers, regressed, rows, transform, transformed
from .single_targets import single_targets

AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""Both in the order of TreeEnsemble's numbers."""


def reached(node: Node, x: Tensor, forest: Forest) -> Tensor:
    """The number of the leaf of each row of `x` (rows, features) in each tree: int64 (rows, trees)."""
    most = int(forest.features.max(initial=0))
    if x.builder.bounds(x.shape[1])[0] <= most:
        node.invalid(f"a node asks for the feature {most} of {x.shape[1]}")
    features, children = node.parameter(forest.features), node.parameter(forest.children)
    is_wide = DType.FLOAT64 in (x.dtype, DType.from_numpy(forest.values.dtype))
    x = x.cast(DType.FLOAT64) if is_wide else x
    values = node.parameter(forest.values.astype(x.dtype.numpy))
    place = node.parameter(forest.roots).unsqueeze(0).expand([x.shape[0], len(forest.roots)])
    for _ in range(forest.depth):
        own, value = build.gather(x, build.take(features, place), 1), build.take(values, place)
        differs = build.where(own < value, build.full(x.builder, (), LESS, DType.INT64), MISSING)
        differs = build.where(own > value, MORE, differs)
        outcome = build.where(build.equal(own, value), SAME, differs)
        place = build.take(children, place * OUTCOMES + outcome)
    return place


def aggregated(node: Node, x: Tensor, forest: Forest, how: str) -> Tensor:
    """The aggregated leaf weights of each row for each target: (rows, targets)."""
    leaves = reached(node, x, forest)
    if how in ("SUM", "AVERAGE"):
        total = build.take(node.parameter(forest.weights), leaves).sum([1])
        return total * (1.0 / len(forest.roots)) if how == "AVERAGE" else total
    targets = forest.is_given.shape[1]
    if targets > 1:
        node.fail(f"the {how} of leaves is that of one target, here are {targets}")
    found = build.take(node.parameter(forest.weights), leaves)
    return found.max([1]) if how == "MAX" else found.min([1])


def tree_regressor(node: Node) -> Value:
    x = rows(node, numbers(node))
    forest = listed(node, "target", node.integer("n_targets"))
    total = aggregated(node, x, forest, node.choice("aggregate_function", AGGREGATES, "SUM"))
    if floats(node, "base_values").size and not _counts_for_all(forest):
        node.fail("leaves do not count for all targets, and there are base_values")
    return regressed(node, _based(node, total, forest.weights.shape[1])).cast(DType.FLOAT32)


def _based(node: Node, total: Tensor, targets: int) -> Tensor:
    base = floats(node, "base_values")
    if not base.size:
        return total
    if base.size not in (1, targets):
        node.invalid(f"{base.size} base_values do not fit {targets} targets")
    return total + node.parameter(base.astype(total.dtype.numpy))


def tree_classifier(node: Node) -> Sequence[Value | Absent]:
    """One score per class. If all leaves of two classes weigh for the first label, the score is that of the second."""
    x = rows(node, numbers(node))
    count = label_count(node, "classlabels_int64s")
    forest = listed(node, "class", count)
    counted = forest.is_given.any(0)
    total = aggregated(node, x, forest, "SUM")
    if count == 2 and counted.tolist() == [True, False]:
        return _of_two(node, total[:, 0, None], bool((forest.weights >= 0).all()))
    if count < 3:
        found = np.flatnonzero(counted).tolist()
        node.fail(f"of {count} classes the leaves count for {found}, not only for the first of two")
    # A class without a score has 0 here, but none in ONNX Runtime: refuse trees in which 0 could be the best score.
    may_be_least = (forest.weights[forest.is_given] <= 0).any()
    if may_be_least and not floats(node, "base_values").size and not _counts_for_all(forest):
        node.fail("leaves count 0 or less for classes, and do not count for all of them; give base_values")
    total = _based(node, total, count)
    found = labels(node, "classlabels_int64s", best(total))
    return [found, transformed(node, total).cast(DType.FLOAT32)]


def _counts_for_all(forest: Forest) -> bool:
    """Whether for each target some tree has a weight in all of its leaves, so that every row has a score for it."""
    each = [forest.is_given[forest.leaves(root)].all(0) for root in forest.roots.tolist()]
    return bool(np.any(each, axis=0).all())


def _of_two(node: Node, score: Tensor, is_probability: bool) -> Sequence[Value | Absent]:
    """Labels and scores of two classes. The second is chosen for a probability above 0.5, or another score above 0."""
    base = floats(node, "base_values")
    if base.size > 1:
        node.fail(f"{base.size} base_values for one score are not supported")
    if is_probability and transform(node) != "NONE":
        node.fail(f"post_transform {transform(node)} of weights of which none is negative is not supported")
    score = score + node.parameter(base.astype(score.dtype.numpy)) if base.size else score
    is_second = score[:, 0] > (0.5 if is_probability else 0.0)
    found = labels(node, "classlabels_int64s", is_second.cast(DType.INT64))
    return [found, both(node, score, is_probability).cast(DType.FLOAT32)]


def tree_ensemble(node: Node) -> Value:
    """TreeEnsemble, which replaces the two older operators; a leaf has one target."""
    x = rows(node, node.tensor(0))
    how, after = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    if not 0 <= how < len(AGGREGATES) or not 0 <= after < len(TRANSFORMS):
        node.invalid(f"aggregate_function {how} and post_transform {after} are not both known")
    total = aggregated(node, x, single_targets(node), AGGREGATES[how])
    return transformed(node, total, TRANSFORMS[after]).cast(x.dtype)


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
}

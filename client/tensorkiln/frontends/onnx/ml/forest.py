"""Decision trees as tables: the feature of each node, its threshold, and its child for each outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..node import Node
from ..value import MAX_GROWN_ELEMENTS, Host

LESS, SAME, MORE, MISSING = range(4)
"""The outcomes of a comparison of a feature with a node's value; a missing feature is NaN."""
OUTCOMES: Final = 4
HOLDS: Final[Mapping[str, frozenset[int]]] = {
    "BRANCH_LEQ": frozenset({LESS, SAME}),
    "BRANCH_LT": frozenset({LESS}),
    "BRANCH_GTE": frozenset({SAME, MORE}),
    "BRANCH_GT": frozenset({MORE}),
    "BRANCH_EQ": frozenset({SAME}),
    "BRANCH_NEQ": frozenset({LESS, MORE, MISSING}),
}
"""The outcomes for which a node of each mode takes its true branch."""
MAX_DEPTH: Final = 256
"""The most levels of a tree; each adds nodes to the graph."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of all trees, leaves included: n nodes, numbered consecutively.

    `features` and `values` have one entry per node, `children` one per node and outcome (a leaf is its own child).
    `weights` is (n, targets), and `is_given` masks the weights that a leaf has. `roots` has one node per tree; no leaf
    is more than `depth` comparisons from it.
    """

    features: Host
    values: Host
    children: Host
    roots: Host
    weights: Host
    is_given: Host
    depth: int

    def leaves(self, root: int) -> list[int]:
        """The leaves of a tree, sorted; a node may have several parents."""
        found, seen, waiting = set[int](), {root}, [root]
        while waiting:
            number = waiting.pop()
            below = set(self.children[number * OUTCOMES : (number + 1) * OUTCOMES].tolist())
            if below == {number}:
                found.add(number)
            waiting.extend(below - seen)
            seen |= below
        return sorted(found)


class Growing:
    """A forest under construction."""

    def __init__(self, node: Node, values: np.dtype[Any], weights: np.dtype[Any], targets: int) -> None:
        self._node, self._targets = node, targets
        self._value_dtype, self._weight_dtype = values, weights
        self._features: list[int] = []
        self._values: list[float] = []
        self._children: list[list[int]] = []
        self._weights: list[tuple[int, int, float]] = []

    def add(self) -> int:
        """Add a node, a leaf until `branch` is called for it."""
        number = len(self._features)
        self._features.append(0)
        self._values.append(0)
        self._children.append([number] * OUTCOMES)
        return number

    def branch(self, number: int, feature: int, value: float, mode: str, missing: bool, sides: tuple[int, int]) -> None:
        """Make a node compare a feature; `sides` are the true and the false child. `missing`: NaN counts as true."""
        if feature < 0:
            self._node.invalid(f"a node asks for the feature {feature}")
        if not all(0 <= side < len(self._features) for side in sides):
            self._node.invalid("a node names a child that does not exist")
        if number in sides:
            self._node.invalid("a node leads to itself")
        holds = HOLDS[mode] | ({MISSING} if missing else set[int]())
        self._features[number], self._values[number] = feature, value
        self._children[number] = [sides[0] if outcome in holds else sides[1] for outcome in range(OUTCOMES)]

    def weigh(self, number: int, target: int, weight: float) -> None:
        """Add a weight of a leaf for a target."""
        if not 0 <= target < self._targets:
            self._node.invalid(f"a leaf counts for the target {target} of {self._targets}")
        self._weights.append((number, target, weight))

    def forest(self, roots: Sequence[int]) -> Forest:
        """The finished forest. UnsupportedGraphError above `MAX_DEPTH` or `MAX_GROWN_ELEMENTS` weights."""
        shape = (len(self._features), self._targets)
        if shape[0] * shape[1] > MAX_GROWN_ELEMENTS:
            self._node.fail(f"{shape[0]} nodes of {shape[1]} targets are more than {MAX_GROWN_ELEMENTS} weights")
        weights, is_given = np.zeros(shape, self._weight_dtype), np.zeros(shape, np.bool_)
        for number, target, weight in self._weights:
            weights[number, target] += weight
            is_given[number, target] = True
        return Forest(
            np.asarray(self._features, np.int64),
            np.asarray(self._values, self._value_dtype),
            np.asarray(self._children, np.int64).reshape(-1),
            np.asarray(roots, np.int64),
            weights,
            is_given,
            self._depth(roots),
        )

    def _depth(self, roots: Sequence[int]) -> int:
        level, depth = set(roots), 0
        while level := {child for number in level for child in self._children[number] if child != number}:
            depth += 1
            if depth > MAX_DEPTH:
                self._node.fail(f"a tree is deeper than {MAX_DEPTH} nodes, or has a cycle")
        return depth


def listed(node: Node, prefix: str, targets: int) -> Forest:
    """The forest of TreeEnsembleClassifier and TreeEnsembleRegressor: lists of nodes, each with the number of its tree.

    The attributes of leaves start with `prefix`, `class` or `target`.
    """
    node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    values, weights = floats(node, "nodes_values"), floats(node, f"{prefix}_weights")
    names = list(zip(node.integers("nodes_treeids"), node.integers("nodes_nodeids"), strict=True))
    growing = Growing(node, values.dtype, weights.dtype, targets)
    numbers = {name: growing.add() for name in names}
    if len(numbers) != len(names):
        node.invalid("two nodes of a tree have one number")
    modes = node.strings("nodes_modes", [])
    missing = node.integers("nodes_missing_value_tracks_true", []) or [0] * len(names)
    sides = (node.integers("nodes_truenodeids"), node.integers("nodes_falsenodeids"))
    led_to: set[int] = set()
    each = zip(names, node.integers("nodes_featureids"), values.tolist(), modes, missing, *sides, strict=True)
    for name, feature, value, mode, is_missing, yes, no in each:
        if mode == "LEAF":
            continue
        if mode not in HOLDS:
            node.invalid(f"nodes_modes {mode!r} is not one of {', '.join(HOLDS)}, LEAF")
        branches = numbers[name[0], yes], numbers[name[0], no]
        growing.branch(numbers[name], feature, value, mode, bool(is_missing), branches)
        led_to.update(branches)
    ids = zip(node.integers(f"{prefix}_treeids"), node.integers(f"{prefix}_nodeids"), strict=True)
    for name, target, weight in zip(ids, node.integers(f"{prefix}_ids"), weights.tolist(), strict=True):
        growing.weigh(numbers[name], target, weight)
    roots = {name: number for name, number in numbers.items() if number not in led_to}
    if sorted(tree for tree, _ in roots) != sorted({tree for tree, _ in names}):
        node.invalid("a tree has no root, or more than one")
    return growing.forest(list(roots.values()))


def floats(node: Node, name: str) -> Host:
    """A list attribute of floats, as float32, or its tensor variant in newer models."""
    if node.is_set(f"{name}_as_tensor"):
        return node.array(f"{name}_as_tensor").reshape(-1)
    return np.asarray(node.numbers(name, []), np.float32)

"""The forest of TreeEnsemble: separate nodes and leaves, one target per leaf, and set membership tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..node import Node
from ..value import Host
from .forest import HOLDS, Forest, Growing

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""The modes in the order of TreeEnsemble's numbers."""


def single_targets(node: Node) -> Forest:
    """Read the forest: nodes first, then leaves; a membership test becomes a chain of equality tests."""
    node.ignore("nodes_hitrates")
    splits, weights = node.array("nodes_splits").reshape(-1), node.array("leaf_weights").reshape(-1)
    targets = node.integers("leaf_targetids")
    modes = node.array("nodes_modes").reshape(-1).tolist()
    roots = node.integers("tree_roots")
    for root in roots:
        if not 0 <= root < len(modes):
            node.invalid(f"tree_roots has {root}, and the nodes are 0 to {len(modes) - 1}")
    growing = Growing(node, splits.dtype, weights.dtype, node.integer("n_targets", 1))
    numbers = [growing.add() for _ in modes]
    leaves = [growing.add() for _ in targets]
    for leaf, target, weight in zip(leaves, targets, weights.tolist(), strict=True):
        growing.weigh(leaf, target, weight)
    missing = node.integers("nodes_missing_value_tracks_true", []) or [0] * len(modes)
    yes = _sides(node, "true", numbers, leaves)
    no = _sides(node, "false", numbers, leaves)
    sets = _sets(node)
    each = zip(numbers, node.integers("nodes_featureids"), splits.tolist(), modes, missing, yes, no, strict=True)
    for number, feature, split, mode, is_missing, true, false in each:
        if not 0 <= mode < len(MODES):
            node.invalid(f"nodes_modes {mode} is outside 0 to {len(MODES) - 1}")
        if MODES[mode] in HOLDS:
            growing.branch(number, feature, split, MODES[mode], bool(is_missing), (true, false))
            continue
        members = next(sets, None)
        if not members:
            node.invalid("membership_values do not have a set for each node that asks for one")
        if is_missing:
            node.fail("a node that asks for a set takes NaN for no member")
        for member in members[:-1]:
            following = growing.add()
            growing.branch(number, feature, member, "BRANCH_EQ", False, (true, following))
            number = following
        growing.branch(number, feature, members[-1], "BRANCH_EQ", False, (true, false))
    return growing.forest(roots)


def _sides(node: Node, side: str, numbers: list[int], leaves: list[int]) -> list[int]:
    ids, is_leaf = node.integers(f"nodes_{side}nodeids"), node.integers(f"nodes_{side}leafs")
    if not all(0 <= place < len(leaves if leaf else numbers) for place, leaf in zip(ids, is_leaf, strict=True)):
        node.invalid(f"nodes_{side}nodeids name nodes or leaves that do not exist")
    return [leaves[place] if leaf else numbers[place] for place, leaf in zip(ids, is_leaf, strict=True)]


def _sets(node: Node) -> Iterator[list[float]]:
    """The sets of members; NaN ends each set."""
    values: Host = node.array("membership_values", np.zeros(0, np.float32)).reshape(-1)
    members: list[float] = []
    for value in values.tolist():
        if np.isnan(value):
            yield members
            members = []
        else:
            members.append(value)

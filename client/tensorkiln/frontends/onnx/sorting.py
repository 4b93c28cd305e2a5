"""TopK by rank, and sorting of values known at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..composed.ranking import first_in_order
from .node import Node
from .value import Value


def top_k(node: Node) -> list[Value]:
    """The greatest or least elements along an axis, and their positions; the order is stable."""
    x = node.tensor(0)
    axis = node.integer("axis", -1) % x.rank
    count = node.known_integer(1) if node.opset >= 10 else node.integer("k")
    is_largest = node.opset < 11 or node.integer("largest", 1) == 1
    node.ignore("sorted")  # If any order is allowed, sorted is correct, too.
    extent = x.shape[axis]
    low, high = node.builder.bounds(extent)
    if not 0 <= count <= high:
        node.invalid(f"{count} of {extent} elements are asked for")
    if count > low:
        node.fail(f"k is {count}, but axis {axis} has {extent} elements, perhaps only {low}; give its symbols bounds")
    return list(first_in_order(x, axis, count, is_largest, node.fail))


def unique(node: Node) -> list[Value]:
    """The distinct elements of a value known at import, since their number must be static."""
    x = node.host(0)
    if x.dtype == object:
        node.fail("which dimensions are equal depends on symbols")
    axis = node.integer("axis") if node.is_set("axis") else None
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.integer("sorted", 1):
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return [values, *(each.astype(np.int64) for each in (first, inverse, counts))]


OPERATORS: dict[str, Callable[[Node], Sequence[Value]]] = {"TopK": top_k, "Unique": unique}

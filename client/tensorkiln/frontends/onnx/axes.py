"""Axes and slices: attributes in older opsets, inputs in newer ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...expr import Dim, Expr, add, maximum
from .node import Node
from .value import Host, dims_of


def given(node: Node, name: str, input_since: int, position: int) -> list[int] | None:
    """A list of integers: the attribute `name`, or from opset `input_since` on the input at `position`."""
    if node.opset < input_since:
        return node.integers(name) if node.is_set(name) else None
    return integers(node, node.host(position)) if node.has(position) else None


def required(node: Node, name: str, input_since: int, position: int) -> list[int]:
    """`given`, refusing a node without it."""
    found = given(node, name, input_since, position)
    return node.fail(f"{name} are missing") if found is None else found


def integers(node: Node, values: Host) -> list[int]:
    """A host value as plain integers. UnsupportedGraphError when it depends on symbols."""
    found = dims_of(values)
    static = [dim for dim in found if isinstance(dim, int)]
    return static if len(static) == len(found) else node.fail("axes and indices do not depend on symbols")


def slices(node: Node, shape: Sequence[Dim]) -> list[slice]:
    """One slice an axis: attributes before opset 10, then the inputs starts, ends, axes and steps."""
    if node.opset < 10:
        starts, ends = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes", list(range(len(starts)))), [1] * len(starts)
        return _by_axis(node, shape, starts, ends, axes, steps)
    starts, ends = dims_of(node.host(1)), dims_of(node.host(2))
    axes = integers(node, node.host(3)) if node.has(3) else list(range(len(starts)))
    steps = integers(node, node.host(4)) if node.has(4) else [1] * len(starts)
    return _by_axis(node, shape, starts, ends, axes, steps)


def _by_axis(
    node: Node,
    shape: Sequence[Dim],
    starts: Sequence[Dim],
    ends: Sequence[Dim],
    axes: Sequence[int],
    steps: Sequence[int],
) -> list[slice]:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        node.invalid(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps do not fit")
    rank = len(shape)
    parts = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -rank <= axis < rank or step == 0:
            node.fail(f"a slice of axis {axis} by steps of {step} does not fit rank {rank}")
        parts[axis] = slice(_start(node, start, shape[axis], step), _end(end, step), step)
    return parts


def _start(node: Node, start: Dim, dim: Dim, step: int) -> Dim:
    """ONNX clamps a backward start before the first element to that element; Python would give an empty slice."""
    if isinstance(start, Expr) or start >= 0 or step > 0:
        return start
    low, high = node.builder.bounds(dim)
    if low + start >= 0:
        return start
    return 0 if high + start <= 0 else maximum(add(dim, start), 0)


def _end(end: Dim, step: int) -> Dim | None:
    """None for a backward slice that includes the first element, which ONNX marks by an end of at most -INT32_MAX."""
    if isinstance(end, Expr) or step > 0:
        return end
    return None if end <= -int(np.iinfo(np.int32).max) else end

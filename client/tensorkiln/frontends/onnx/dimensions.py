"""Operators on symbolic dimensions, which exporters write between `Shape` and `Reshape`.

Comparisons are folded if the bounds of the symbols decide them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from ...expr import Dim, add, floormod, maximum, minimum, mul, sub
from . import axes
from .node import Node
from .value import Host, as_objects, dims_of, settled

Fold: TypeAlias = Callable[[Node], Host]


def _elementwise(function: Callable[..., Any], dtype: type = object) -> Fold:
    def fold(node: Node) -> Host:
        operands = [as_objects(value) for value in node.hosts()]
        result = np.frompyfunc(function, len(operands), 1)(*operands)
        return settled(np.asarray(result, object)) if dtype is object else np.asarray(result, dtype)

    return fold


def _compared(holds: Callable[[int, int], bool | None]) -> Fold:
    """A comparison by the bounds of the difference. UnsupportedGraphError when they do not decide it."""

    def fold(node: Node) -> Host:
        def decide(left: Dim, right: Dim) -> bool:
            found = holds(*node.builder.bounds(sub(left, right)))
            return found if found is not None else node.fail(f"whether {left} or {right} is greater depends on symbols")

        return _elementwise(decide, bool)(node)

    return fold


def _equal(low: int, high: int) -> bool | None:
    if low == high == 0:
        return True
    return False if low > 0 or high < 0 else None


def _less(low: int, high: int) -> bool | None:
    if high < 0:
        return True
    return False if low >= 0 else None


def _less_or_equal(low: int, high: int) -> bool | None:
    if high <= 0:
        return True
    return False if low > 0 else None


def _swapped(holds: Callable[[int, int], bool | None]) -> Callable[[int, int], bool | None]:
    return lambda low, high: holds(-high, -low)


def _absolute(node: Node) -> Host:
    def size(dim: Dim) -> Dim:
        low, high = node.builder.bounds(dim)
        if low >= 0:
            return dim
        return mul(dim, -1) if high <= 0 else maximum(dim, mul(dim, -1))

    return _elementwise(size)(node)


def _sign(node: Node) -> Host:
    def sign(dim: Dim) -> int:
        low, high = node.builder.bounds(dim)
        if low > 0 or high < 0 or low == high == 0:
            return int(np.sign(low))
        return node.fail(f"the sign of {dim} depends on symbols")

    return _elementwise(sign)(node)


def _modulo(node: Node) -> Host:
    if node.integer("fmod", 0):
        node.fail("the truncating remainder of a dimension is not supported")
    return _elementwise(floormod)(node)


def _chosen(node: Node) -> Host:
    condition, left, right = node.hosts()
    return settled(np.asarray(np.where(condition.astype(bool), as_objects(left), as_objects(right))))


def _variadic(function: Callable[[Dim, Dim], Dim]) -> Fold:
    return lambda node: _elementwise(lambda *dims: reduce(function, dims))(node)


def _reduced(function: Callable[[Dim, Dim], Dim], axes_input_since: int) -> Fold:
    """A reduction of a list of dims, to one element or a scalar."""

    def fold(node: Node) -> Host:
        data = node.host(0)
        over = axes.given(node, "axes", axes_input_since, 1)
        if not over and node.opset >= axes_input_since and node.integer("noop_with_empty_axes", 0):
            node.ignore("keepdims")
            return data
        node.ignore("noop_with_empty_axes")
        if data.ndim != 1 or over not in (None, [], [0], [-1]):
            node.fail(f"dimensions of rank {data.ndim} are reduced over {over}")
        total = np.empty((1,) if node.integer("keepdims", 1) else (), object)
        total[...] = reduce(function, dims_of(data))
        return settled(total)

    return fold


def _expanded(node: Node) -> Host:
    data, shape = node.host(0), axes.integers(node, node.host(1))
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape))).copy()


def _tiled(node: Node) -> Host:
    return np.tile(node.host(0), axes.integers(node, node.host(1)))


def _running(node: Node) -> Host:
    data = node.host(0)
    if node.integer("exclusive", 0) or node.integer("reverse", 0) or data.ndim != 1:
        node.fail("dimensions are summed from the first on, each with itself")
    totals = np.empty(data.shape, object)
    for place, dim in enumerate(dims_of(data)):
        totals[place] = dim if place == 0 else add(totals[place - 1], dim)
    return settled(totals)


def is_nonzero(node: Node, dim: Dim) -> bool:
    """Whether a dim is nonzero, by its bounds. UnsupportedGraphError when they do not decide it."""
    low, high = node.builder.bounds(dim)
    if low <= 0 <= high and low < high:
        node.fail(f"whether {dim} is 0 depends on symbols")
    return low != 0


def _scattered(node: Node) -> Host:
    if node.host(0).ndim != 1:
        node.fail(f"elements of dimensions of rank {node.host(0).ndim} are not put in their places")
    if node.opset >= 16 and node.string("reduction", "none") != "none":
        node.fail("dimensions are put in their places, not combined")
    data, indices, updates = as_objects(node.host(0)).copy(), node.host(1), as_objects(node.host(2))
    if node.op == "ScatterND":
        data[tuple(np.moveaxis(indices, -1, 0))] = updates
    else:
        node.ignore("axis")
        data[indices] = updates
    return settled(data)


FOLDS: Final[dict[str, Fold]] = {
    "Abs": _absolute,
    "CumSum": _running,
    "Equal": _compared(_equal),
    "Expand": _expanded,
    "Greater": _compared(_swapped(_less)),
    "GreaterOrEqual": _compared(_swapped(_less_or_equal)),
    "Less": _compared(_less),
    "LessOrEqual": _compared(_less_or_equal),
    "Max": _variadic(maximum),
    "Min": _variadic(minimum),
    "Mod": _modulo,
    "Neg": _elementwise(lambda dim: mul(dim, -1)),
    "ReduceMax": _reduced(maximum, 18),
    "ReduceMin": _reduced(minimum, 18),
    "ReduceProd": _reduced(mul, 18),
    "ReduceSum": _reduced(add, 13),
    "ScatterElements": _scattered,
    "ScatterND": _scattered,
    "Sign": _sign,
    "Tile": _tiled,
    "Where": _chosen,
}
"""Operators on arrays of dims, by ONNX's name."""


def is_symbolic(node: Node) -> bool:
    """Whether an input known at import has symbolic dims."""
    return any(value.dtype == object for value in _known(node))


def has_symbolic_bounds(node: Node) -> bool:
    """Whether a target shape, the ends of a slice or the positions of a gather are symbolic, so that the graph must
    compute the result.
    """
    return node.op in ("Expand", "Gather", "Slice", "Tile") and any(value.dtype == object for value in _known(node)[1:])


def _known(node: Node) -> Sequence[Host]:
    return [value for value in node.inputs if isinstance(value, np.ndarray)]

"""The rewrite rules of `one_spelling`, by kind of node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, Protocol, TypeAlias

from ..dtypes import DType
from ..expr import Dim, product
from ..nodes import (
    AnyNode,
    Binop,
    BinopKind,
    Cast,
    Expand,
    Permute,
    ReduceAxis,
    ReduceKind,
    Reshape,
    ShapeTracker,
    View,
    ViewSpec,
)
from ..types import TensorType

SWAPPED: Final = frozenset(
    {BinopKind.ADD, BinopKind.MUL, BinopKind.MAX, BinopKind.MIN, BinopKind.AND, BinopKind.OR, BinopKind.XOR}
)
Made: TypeAlias = "AnyNode | int"
"""A node in another spelling, or the var that has its value."""
Rank: TypeAlias = tuple[int, float, bytes]
Shape: TypeAlias = tuple[Dim, ...]


class Spelling(Protocol):
    """The state that rules read: nodes so far by var, types of all vars, readers per var, and ranks of operands."""

    nodes: dict[int, AnyNode]
    types: dict[int, TensorType]
    readers: dict[int, int]
    ranks: dict[int, Rank]

    def constant(self, var: int) -> float | None: ...

    def new(self, make: Callable[[int], AnyNode], kind: TensorType) -> int: ...


def _permute(spelling: Spelling, node: Permute) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Permute):
        axes = tuple(source.axes_permutation[axis] for axis in node.axes_permutation)
        node = node.model_copy(update={"in_var": source.in_var, "axes_permutation": axes})
        source = spelling.nodes.get(node.in_var)
    if isinstance(source, Reshape) and spelling.readers.get(source.out_var) == 1:
        before = spelling.types[source.in_var].shape
        groups = _joined(before, source.new_shape)
        if groups is not None and len(groups) < len(before):
            # Permute before joining the axes: the result is the same.
            axes = tuple(axis for group in node.axes_permutation for axis in range(*groups[group]))
            moved = spelling.new(
                lambda out: node.model_copy(update={"in_var": source.in_var, "axes_permutation": axes, "out_var": out}),
                TensorType(node.dtype, tuple(before[axis] for axis in axes), None),
            )
            return _reshaped(node.out_var, moved, spelling.types[node.out_var])
    return node.in_var if node.axes_permutation == tuple(range(len(node.axes_permutation))) else node


def _reshape(spelling: Spelling, node: Reshape) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Reshape):
        node = node.model_copy(update={"in_var": source.in_var})
        source = spelling.nodes.get(node.in_var)
    if node.new_shape == spelling.types[node.in_var].shape:
        return node.in_var
    if isinstance(source, ReduceAxis) and spelling.readers.get(source.out_var) == 1:
        before = spelling.types[source.in_var].shape
        if node.new_shape == tuple(1 if axis in source.axes else dim for axis, dim in enumerate(before)):
            # The stated shape of the result makes the reduction keep its axes.
            return source.model_copy(update={"out_var": node.out_var})
    return node


def _joined(before: Shape, after: Shape) -> list[tuple[int, int]] | None:
    """For each axis of `after` the half-open range of axes of `before` that it joins; None for any other reshape."""
    groups: list[tuple[int, int]] = []
    start = 0
    for dim in after:
        end = start + 1
        while end < len(before) and product(before[start:end]) != dim:
            end += 1
        if product(before[start:end]) != dim or end > len(before):
            return None
        groups.append((start, end))
        start = end
    return groups if start == len(before) else None


def _reshaped(out: int, var: int, kind: TensorType) -> Reshape:
    return Reshape.model_construct(node="reshape", in_var=var, new_shape=kind.shape, out_var=out, dtype=kind.dtype)


def _expand(spelling: Spelling, node: Expand) -> Made:
    source = spelling.nodes.get(node.in_var)
    if isinstance(source, Expand):
        node = node.model_copy(update={"in_var": source.in_var})
    return node.in_var if node.new_target_shape == spelling.types[node.in_var].shape else node


def _cast(spelling: Spelling, node: Cast) -> Made:
    return node.in_var if spelling.types[node.in_var].dtype is node.dtype else node


def _reduce(spelling: Spelling, node: ReduceAxis) -> Made:
    smaller = _without_windows_of_one(spelling, node)
    return smaller if smaller is not node else _with_rows_apart(spelling, node)


def _without_windows_of_one(spelling: Spelling, node: ReduceAxis) -> ReduceAxis:
    """Drop reduced axes of size 1 (windows of one element) from the view and from the reduction."""
    source, result = spelling.nodes.get(node.in_var), spelling.types[node.out_var]
    if not isinstance(source, View) or len(source.shape_tracker.views) != 1 or spelling.readers.get(node.in_var) != 1:
        return node
    (view,), kind = source.shape_tracker.views, spelling.types[node.in_var]
    if view.mask is not None or len(result.shape) == len(view.shape):
        return node
    kept = [axis for axis, dim in enumerate(view.shape) if dim != 1 or axis not in node.axes]
    axes = tuple(position for position, axis in enumerate(kept) if axis in node.axes)
    if len(kept) == len(view.shape) or not axes:
        return node
    shape = tuple(view.shape[axis] for axis in kept)
    spec = ViewSpec.model_construct(
        shape=shape, strides=tuple(view.strides[axis] for axis in kept), offset=view.offset, mask=None
    )
    tracker = ShapeTracker.model_construct(views=(spec,), shape=shape)
    smaller = spelling.new(
        lambda out: source.model_copy(update={"shape_tracker": tracker, "out_var": out}),
        TensorType(kind.dtype, shape, None),
    )
    return node.model_copy(update={"in_var": smaller, "axes": axes})


def _with_rows_apart(spelling: Spelling, node: ReduceAxis) -> Made:
    """Where rows (or batches) of a matrix product were joined from several axes, join them in its result instead."""
    factors, result = spelling.nodes.get(node.in_var), spelling.types[node.out_var]
    if not isinstance(factors, Binop) or factors.op is not BinopKind.MUL or node.reduce_op_kind is not ReduceKind.SUM:
        return node
    target = spelling.types[node.in_var].shape
    if spelling.readers.get(node.in_var) != 1 or 0 in node.axes or len(result.shape) == len(target):
        return node
    sides = [_before_it_was_spread(spelling, var) for var in factors.operands]
    if any(len(spread) != len(target) for _, spread in sides):
        return node
    leading = {_leading(spelling.types[var].shape, spread) for var, spread in sides if spread[0] != 1}
    if len(leading) != 1 or len(apart := leading.pop()) < 2:
        return node
    whole = (*apart, *target[1:])
    operands: list[int] = []
    for var, spread in sides:
        shape = (*(apart if spread[0] != 1 else (1,) * len(apart)), *spread[1:])
        operands.append(_spread(spelling, var, shape, whole))
    multiplied = spelling.new(
        lambda out: factors.model_copy(update={"a_var": operands[0], "b_var": operands[1], "out_var": out}),
        TensorType(factors.dtype, whole, None),
    )
    axes = tuple(axis + len(apart) - 1 for axis in node.axes)
    summed = spelling.new(
        lambda out: node.model_copy(update={"in_var": multiplied, "axes": axes, "out_var": out}),
        TensorType(node.dtype, (*apart, *result.shape[1:]), None),
    )
    return _reshaped(node.out_var, summed, result)


def _before_it_was_spread(spelling: Spelling, var: int) -> tuple[int, Shape]:
    """The var that an operand was reshaped and expanded from, and its shape between the two."""
    node = spelling.nodes.get(var)
    if isinstance(node, Expand):
        var = node.in_var
    spread, node = spelling.types[var].shape, spelling.nodes.get(var)
    return (node.in_var if isinstance(node, Reshape) else var), spread


def _leading(before: Shape, spread: Shape) -> Shape:
    """The leading axes of `before` that are joined to the first axis of `spread`; empty where none are."""
    for count in range(1, len(before) + 1):
        if product(before[:count]) == spread[0] and product(before[count:]) == product(spread[1:]):
            return before[:count]
    return ()


def _spread(spelling: Spelling, var: int, shape: Shape, target: Shape) -> int:
    dtype = spelling.types[var].dtype
    if spelling.types[var].shape != shape:
        source, kind = var, TensorType(dtype, shape, None)
        var = spelling.new(lambda out: _reshaped(out, source, kind), kind)
    if shape == target:
        return var
    narrow = var
    return spelling.new(
        lambda out: Expand.model_construct(
            node="expand", in_var=narrow, new_target_shape=target, out_var=out, dtype=dtype
        ),
        TensorType(dtype, target, None),
    )


def _binop(spelling: Spelling, node: Binop) -> Made:
    result, dtype = spelling.types[node.out_var], spelling.types[node.a_var].dtype
    for var, other in ((node.a_var, node.b_var), (node.b_var, node.a_var)):
        neutral = _NEUTRAL.get(node.op)
        value = spelling.constant(other)
        if neutral is None or value is None or spelling.types[var] != result or (var == node.b_var and not neutral[1]):
            continue
        if neutral[0](value, dtype):
            return var
    if node.op in SWAPPED:
        a, b = sorted((node.a_var, node.b_var), key=lambda var: _operand_order(spelling.ranks[var]))
        if a != node.a_var:
            return node.model_copy(update={"a_var": a, "b_var": b})
    return node


def _operand_order(rank: tuple[int, float, bytes]) -> tuple[int, float, bytes]:
    """Sort key of operands: the deepest computation first, then the earliest input; constants last."""
    depth, position, digest = rank
    return -depth, position, digest


def _is_one(value: float, dtype: DType) -> bool:
    return value == 1


def _is_no_summand(value: float, dtype: DType) -> bool:
    # Adding a float 0 is no identity: -0 + 0 is +0.
    return dtype.is_integer and value == 0


def _is_least(value: float, dtype: DType) -> bool:
    return value == (dtype.min if dtype.is_integer else -inf)


def _is_greatest(value: float, dtype: DType) -> bool:
    return value == (dtype.max if dtype.is_integer else inf)


_NEUTRAL: Final[Mapping[BinopKind, tuple[Callable[[float, DType], bool], bool]]] = {
    BinopKind.MUL: (_is_one, True),
    BinopKind.FDIV: (_is_one, False),
    BinopKind.ADD: (_is_no_summand, True),
    BinopKind.SUB: (_is_no_summand, False),
    BinopKind.MAX: (_is_least, True),
    BinopKind.MIN: (_is_greatest, True),
}
"""For each operation a test for its identity element, and whether that may be the first operand."""

RULES: Final[Mapping[type[AnyNode], Callable[[Spelling, Any], Made]]] = {
    Permute: _permute,
    Reshape: _reshape,
    Expand: _expand,
    Cast: _cast,
    ReduceAxis: _reduce,
    Binop: _binop,
}

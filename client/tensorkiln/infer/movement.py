"""Reshape, permute, expand, pad, shrink, flip, cat."""

from __future__ import annotations

from ..expr import Dim, add, mul, sub
from ..nodes import Cat, Expand, Flip, Pad, Permute, Reshape, Shrink
from ..types import TensorType
from .legality import STORED
from .scope import Scope, shape_text


def operand(scope: Scope, var: int, field: str = "in_var") -> TensorType:
    """The type of an operand that carries data."""
    found = scope.types[var]
    if found.dtype not in STORED:
        scope.fail(f"the operand is {found.dtype}, which carries no data", field)
    return found


def reshape(node: Reshape, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    shape = node.new_shape
    result = scope.type(source.dtype, shape)
    if shape != source.shape and (given := mul(*source.shape)) != (wanted := mul(*shape)):
        message = f"cannot reshape {shape_text(source.shape)} to {shape_text(shape)}: different element counts"
        scope.require_eq(given, wanted, message, "new_shape")
    return result


def permute(node: Permute, scope: Scope) -> TensorType:
    source, axes = operand(scope, node.in_var), node.axes_permutation
    scope.require_dtype(node.dtype, source.dtype)
    if sorted(axes) != list(range(source.rank)):
        scope.fail(f"{list(axes)} is not a permutation of the {source.rank} axes", "axes_permutation")
    return scope.type(source.dtype, tuple([source.shape[axis] for axis in axes]))


def expand(node: Expand, scope: Scope) -> TensorType:
    source, target = operand(scope, node.in_var), node.new_target_shape
    scope.require_dtype(node.dtype, source.dtype)
    message = f"cannot expand {shape_text(source.shape)} to {shape_text(target)}"
    if len(target) != source.rank:
        scope.fail(f"{message}: reshape to the same rank first", "new_target_shape")
    result = scope.type(source.dtype, target)
    for size, wanted in zip(source.shape, target, strict=True):
        if size != 1:
            scope.require_eq(size, wanted, message, "new_target_shape")
    return result


def pad(node: Pad, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    if len(node.pad_width) != source.rank:
        scope.fail(f"pad_width has {len(node.pad_width)} pairs for a value of rank {source.rank}", "pad_width")
    for before, after in node.pad_width:
        scope.require_ge(before, 0, "a pad width is not negative (shrink instead)", "pad_width")
        scope.require_ge(after, 0, "a pad width is not negative (shrink instead)", "pad_width")
    sizes = zip(source.shape, node.pad_width, strict=True)
    return scope.type(source.dtype, tuple(add(before, size, after) for size, (before, after) in sizes))


def shrink(node: Shrink, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    if len(node.limits) != source.rank:
        scope.fail(f"limits has {len(node.limits)} pairs for a value of rank {source.rank}", "limits")
    for size, (begin, end) in zip(source.shape, node.limits, strict=True):
        scope.require_ge(begin, 0, "a limit of shrink begins at 0 or later", "limits")
        scope.require_ge(end, begin, "a limit of shrink does not end before it begins", "limits")
        scope.require_ge(size, end, "a limit of shrink ends inside the axis", "limits")
    return scope.type(source.dtype, tuple(sub(end, begin) for begin, end in node.limits))


def distinct_axes(scope: Scope, axes: tuple[int, ...], rank: int, field: str) -> None:
    """Refuses axes that are negative, too large or doubled."""
    for axis in axes:
        scope.require_axis(axis, rank, field)
    if len(set(axes)) != len(axes):
        scope.fail(f"an axis appears twice in {list(axes)}", field)


def flip(node: Flip, scope: Scope) -> TensorType:
    source = operand(scope, node.in_var)
    scope.require_dtype(node.dtype, source.dtype)
    distinct_axes(scope, node.axes, source.rank, "axes")
    return source


def joined(scope: Scope, parts: list[TensorType], axis: int, field: str) -> TensorType:
    """The type of `parts` joined along a non-negative `axis`; all have one dtype and agree on the other axes."""
    first = parts[0]
    for part in parts[1:]:
        if part.dtype is not first.dtype:
            scope.fail(f"the parts have different dtypes: {first.dtype} and {part.dtype}", field)
        if part.rank != first.rank:
            scope.fail(f"the parts have different ranks: {shape_text(first.shape)} and {shape_text(part.shape)}", field)
        for other, (mine, theirs) in enumerate(zip(first.shape, part.shape, strict=True)):
            if other != axis:
                scope.require_eq(mine, theirs, f"the parts differ on axis {other}, which is not joined", field)
    total: Dim = add(*(part.shape[axis] for part in parts))
    return scope.type(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def cat(node: Cat, scope: Scope) -> TensorType:
    if not node.in_vars:
        scope.fail("cat takes at least one input", "in_vars")
    parts = [operand(scope, var, "in_vars") for var in node.in_vars]
    rank = parts[0].rank
    if not -rank <= node.axis < rank:
        scope.fail(f"axis {node.axis} is outside of a value of rank {rank}", "axis")
    scope.require_dtype(node.dtype, parts[0].dtype)
    return joined(scope, parts, node.axis % rank, "in_vars")


RULES = {Reshape: reshape, Permute: permute, Expand: expand, Pad: pad, Shrink: shrink, Flip: flip, Cat: cat}

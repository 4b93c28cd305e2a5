"""Movement nodes: each maps the index of its result to an index of its operand, with conditions for masks."""

from __future__ import annotations

from collections.abc import Callable

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from ..loops.index_space import Index
from ..loops.scalar_dag import Node
from ..values import Value
from .tracer import Conditions, Trace, Tracer, between


def trace_identity(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """contiguous, detach, fuse, unroll, noop, copy, kernel: the operand itself"""
    return tracer.element(value.operands[0], index, conditions)


def trace_reshape(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out[i] = in[unflatten(flatten(i))]"""
    source = value.operands[0]
    return tracer.element(source, tracer.space.reshape(index, value.shape, source.shape), conditions)


def trace_permute(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out.shape[i] = in.shape[p[i]], so the index of the operand at p[i] is the result's index at i"""
    source_index: list[Dim] = [0] * len(index)
    for position, axis in zip(index, value.ints("axes_permutation"), strict=True):
        source_index[axis] = position
    return tracer.element(value.operands[0], tuple(source_index), conditions)


def trace_expand(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """A dimension of size 1 is read at 0 for every index."""
    source = value.operands[0]
    kept = tuple(0 if extent == 1 else position for extent, position in zip(source.shape, index, strict=True))
    return tracer.element(source, kept, conditions)


def trace_pad(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """Zero outside; the operand shifted by the leading width inside."""
    source = value.operands[0]
    shifted: list[Dim] = []
    inside: list[Dim] = []
    for position, extent, (before, after) in zip(index, source.shape, value.dim_pairs("pad_width"), strict=True):
        moved = expr.sub(position, before)
        shifted.append(moved)
        if before != 0:
            inside.append(moved)
        if after != 0:
            inside.append(between(moved, 0, extent)[1])
    return tracer.within(source, tuple(shifted), conditions, *inside)


def trace_shrink(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out[i] = in[i + begin]"""
    begins = [begin for begin, _ in value.dim_pairs("limits")]
    moved = tuple(expr.add(position, begin) for position, begin in zip(index, begins, strict=True))
    return tracer.element(value.operands[0], moved, conditions)


def trace_flip(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out[i] = in[extent - 1 - i] along the flipped axes"""
    flipped = list(index)
    for axis in value.ints("axes"):
        flipped[axis] = expr.sub(expr.sub(value.shape[axis], 1), index[axis])
    return tracer.element(value.operands[0], tuple(flipped), conditions)


def trace_view(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The operand's flat elements addressed through the stacked views, zero where a mask excludes them."""
    flat, inside = _address(tracer, value, index)
    source = value.operands[0]
    return tracer.where(value.dtype, conditions, inside, lambda inner: tracer.flat_element(source, flat, inner))


def trace_valid(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The mask of the views for a unit or rank-0 bool operand; for a tensor, the operand where the mask holds."""
    _, inside = _address(tracer, value, index)
    source = value.operands[0]
    is_mask = source.dtype is DType.UNIT or (source.dtype.is_bool and not source.shape)
    if not is_mask:
        return tracer.within(source, index if source.shape else (), conditions, *inside)
    return tracer.where(value.dtype, (), inside, lambda _: tracer.nodes.constant(value.dtype, True))


def _address(tracer: Tracer, value: Value, index: Index) -> tuple[Dim, list[Dim]]:
    """`(flat address, conditions)` of a shape tracker, whose last view has the shape of the result."""
    flat: Dim = 0
    inside: list[Dim] = []
    for level, view in enumerate(reversed(value.views())):
        if level:
            index = tracer.space.unflatten(flat, view.shape)
        flat = expr.add(view.offset, *(expr.mul(i, s) for i, s in zip(index, view.strides, strict=True)))
        for position, limits in zip(index, view.mask or (), strict=bool(view.mask)):
            inside.extend(between(position, *limits))
    return flat, inside


def trace_cat(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The part whose range along the axis holds the index."""
    axis = value.int("axis") % len(value.shape)
    starts: list[Dim] = [0]
    for part in value.operands:
        starts.append(expr.add(starts[-1], part.shape[axis]))
    node: Node | None = None
    for part, start, end in reversed(list(zip(value.operands, starts, starts[1:], strict=False))):
        if part.shape[axis] == 0:
            continue
        low, high = between(index[axis], start, end)
        restricted = tracer.restrict(conditions, low, high)
        if restricted is None:
            continue
        moved = (*index[:axis], expr.sub(index[axis], start), *index[axis + 1 :])
        here = tracer.element(part, moved, restricted[0])
        within = tracer.restrict((), high)
        node = here if node is None or within is None else tracer.nodes.choose(within[1], here, node)
    return tracer.nodes.zero(value.dtype) if node is None else node


def trace_vectorize(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The operands stacked on a new last axis."""
    parts = value.operands
    return _lane(tracer, index[-1], len(parts), lambda at: tracer.element(parts[at], index[:-1], conditions))


def trace_gep(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """in[..., indices]; a single index drops the last dimension"""
    lanes = value.ints("indices")
    source = value.operands[0]
    if len(lanes) == 1:
        return tracer.element(source, (*index, lanes[0]), conditions)
    return _lane(tracer, index[-1], len(lanes), lambda at: tracer.element(source, (*index[:-1], lanes[at]), conditions))


def _lane(tracer: Tracer, lane: Dim, count: int, element: Callable[[int], Node]) -> Node:
    """The element at index `lane` out of `count`."""
    if isinstance(lane, int):
        return element(lane)
    node = element(count - 1)
    for position in range(count - 2, -1, -1):
        node = tracer.nodes.choose((expr.sub(position, lane),), element(position), node)
    return node


MOVEMENT: dict[str, Trace] = {
    **dict.fromkeys(
        ("contiguous", "contiguous_backward", "detach", "fuse", "unroll", "kernel", "placeholder"), trace_identity
    ),
    "reshape": trace_reshape,
    "permute": trace_permute,
    "expand": trace_expand,
    "pad": trace_pad,
    "shrink": trace_shrink,
    "flip": trace_flip,
    "view": trace_view,
    "valid": trace_valid,
    "cat": trace_cat,
    "vectorize": trace_vectorize,
    "gep": trace_gep,
}

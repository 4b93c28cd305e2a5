"""Nodes whose index is read from data: reads out of range give zero and touch no memory."""

from __future__ import annotations

from tensorkiln import expr

from ..loops.index_space import Index
from ..loops.scalar_dag import Condition, InRange, Node
from ..values import Value
from .tracer import Conditions, Trace, Tracer


def _dynamic_index(tracer: Tracer, position: Node, extent: expr.Dim) -> tuple[expr.Dim, InRange]:
    """The run-time integer `position` as an index below `extent`, and the condition that it is in range."""
    name = tracer.nodes.dynamic_name(position, extent)
    return tracer.space.add(name, extent), tracer.nodes.in_range(position, extent)


def trace_gather(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """numpy.take_along_axis, with zero for an index that is negative or too large"""
    source, indices = value.operands
    axis = value.int("axis")
    position = tracer.element(indices, index, conditions)
    along, in_range = _dynamic_index(tracer, position, source.shape[axis])
    return tracer.within(source, (*index[:axis], along, *index[axis + 1 :]), conditions, in_range)


def trace_index(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """in.ravel()[idx] where valid, zero where not and where out of range"""
    source, positions, *valid = value.operands
    wanted: list[Condition] = []
    if valid:
        flag = tracer.operand(valid[0], index, conditions)
        if not flag.dtype.is_bool:
            flag = tracer.nodes.binop("cmpne", flag, tracer.nodes.zero(flag.dtype))
        wanted.append(tracer.nodes.is_true(flag))
    position = tracer.element(positions, index, conditions)
    flat, in_range = _dynamic_index(tracer, position, expr.product(source.shape))
    wanted.append(in_range)
    return tracer.where(value.dtype, conditions, wanted, lambda inner: tracer.flat_element(source, flat, inner))


def trace_buffer_view(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """Elements `offset .. offset + size` of the buffer's flat storage, of the buffer's own dtype"""
    start = value.dim("offset")
    flat = expr.add(start, tracer.space.flatten(index, value.shape))
    return tracer.flat_element(value.operands[0], flat, conditions)


def trace_assign(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The source where the update covers the element, else the old contents"""
    target, source = value.operands
    limits = value.fields["range"]
    if limits is None:
        return tracer.operand(source, index, conditions)
    begin, end = limits
    flat = tracer.space.flatten(index, value.shape)
    restricted = tracer.restrict(conditions, expr.sub(flat, begin), expr.sub(end - 1, flat))
    if restricted is None:
        return tracer.element(target, index, conditions)
    inner, covered = restricted
    here = tracer.flat_element(source, expr.sub(flat, begin), inner)
    return tracer.nodes.choose(covered, here, tracer.element(target, index, conditions))


INDEXING: dict[str, Trace] = {
    "gather": trace_gather,
    "index": trace_index,
    "buffer_view": trace_buffer_view,
    "assign": trace_assign,
}

"""Values that are known without reading memory: literals, symbols and markers."""

from __future__ import annotations

from tensorkiln import expr

from ..loops.index_space import Index
from ..loops.scalar_dag import Node
from ..values import Value
from .tracer import Conditions, Trace, Tracer


def trace_const_scalar(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The literal, or the value that a symbol is fixed to"""
    return tracer.nodes.constant(value.dtype, value.literal("value"))


def trace_vconst(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """A table of one element; larger tables live in constant buffers"""
    return tracer.nodes.constant(value.dtype, value.fields["values"].item())


def trace_define_var(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The value of a symbol at run time"""
    return tracer.nodes.index_value(value.dtype, expr.symbol(value.fields["sym_var"].name))


def trace_unique(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The id"""
    return tracer.nodes.constant(value.dtype, value.int("id"))


def trace_zero(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """Zero: a device marker, or a buffer nobody has written, whose contents are unspecified"""
    return tracer.zero(value.dtype)


def trace_noop(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The operand, or zero when there is none"""
    if value.operands:
        return tracer.element(value.operands[0], index, conditions)
    return tracer.zero(value.dtype)


CONSTANTS: dict[str, Trace] = {
    "const_scalar": trace_const_scalar,
    "vconst": trace_vconst,
    "define_var": trace_define_var,
    "bind": trace_const_scalar,
    "unique": trace_unique,
    "device": trace_zero,
    "buffer": trace_zero,
    "noop": trace_noop,
}

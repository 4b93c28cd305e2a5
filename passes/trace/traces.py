"""Every op that can be computed element by element, and the function that traces it."""

from __future__ import annotations

from tensorkiln import expr

from ..loops.index_space import Index
from ..loops.scalar_dag import Node
from ..values import Value
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .movement import MOVEMENT
from .tracer import Conditions, Trace, Tracer


def _trace_noop(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The operand, or zero when there is none"""
    if value.operands:
        return tracer.element(value.operands[0], index, conditions)
    return tracer.nodes.zero(value.dtype)


TRACES: dict[str, Trace] = {
    **ELEMENTWISE,
    **INDEXING,
    **MOVEMENT,
    # The literal; for `bind`, the value that a symbol is fixed to.
    **dict.fromkeys(
        ("const_scalar", "bind"), lambda tracer, value, *_: tracer.nodes.constant(value.dtype, value.literal("value"))
    ),
    # A table of one element: larger ones are constant buffers.
    "vconst": lambda tracer, value, *_: tracer.nodes.constant(value.dtype, value.fields["values"].item()),
    "define_var": lambda tracer, value, *_: tracer.nodes.index_value(
        value.dtype, expr.symbol(value.fields["sym_var"].name)
    ),
    "unique": lambda tracer, value, *_: tracer.nodes.constant(value.dtype, value.int("id")),
    # A device marker, or an unwritten buffer, whose contents are unspecified.
    **dict.fromkeys(("device", "buffer"), lambda tracer, value, *_: tracer.nodes.zero(value.dtype)),
    "noop": _trace_noop,
}

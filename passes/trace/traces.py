"""Every op that can be computed element by element, and the function that traces it."""

from __future__ import annotations

from tensorkiln import expr

from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .movement import MOVEMENT
from .tracer import Trace

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
    "noop": lambda tracer, value, *place: (
        tracer.element(value.operands[0], *place) if value.operands else tracer.nodes.zero(value.dtype)
    ),
}

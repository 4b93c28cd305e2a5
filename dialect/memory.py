"""Storage ops: buffers, views into them, copies and updates, all in value semantics."""

from typing import Any

from .fields import dim, flag, integers, optional, text
from .mlir import ext
from .operation import IdentityOp, KilnOp
from .rules import same_dtype, same_type


class PlaceholderOp(KilnOp, name="placeholder", traits=[ext.Pure]):
    """An input of the graph, in modules without a function to carry it as an argument.

    `from_graph` maps every placeholder to an argument of `@graph` and emits none of these.
    """

    result: ext.Result[Any]


class BufferOp(KilnOp, name="buffer"):
    """Unwritten storage; its contents are unspecified (zeros in the reference).

    Each one is a storage of its own, so no two of them may be merged. A buffer that only declares where another node
    puts its result has no op.
    """

    size_in_elements = dim()
    device = text()
    result: ext.Result[Any]


class BufferViewOp(KilnOp, name="buffer_view", traits=[ext.Pure]):
    """`size` elements of the result's dtype in the bytes of the buffer's current value, from its element `offset` on.

    A view is a value too: it shows the buffer's contents at that point. After a write to the buffer, `from_graph` makes
    a new view of the new value for later readers.
    """

    buffer: ext.Operand[Any]
    size = dim()
    offset = dim()
    result: ext.Result[Any]


class ContiguousOp(IdentityOp, name="contiguous", traits=[ext.Pure]):
    """Identity; asks for the value to be stored."""


class CopyOp(IdentityOp, name="copy", traits=[ext.Pure]):
    """The same values on `target_device`; `clone` asks for a new buffer even there."""

    target_device = text()
    clone = flag()


class AssignOp(KilnOp, name="assign", traits=[ext.Pure]):
    """The target's value after one update of it: all of it, or the flat elements `begin <= i < end` of `range`.

    An assign node of several updates is a chain of these. The target operand is the old value of the target, and the
    result is what every later read of the target sees; so operands carry the order of effects, and an op without
    readers has no effect. The compiler decides if the update is in place: it may be if the operand has no other use and
    is not an input.
    """

    target: ext.Operand[Any]
    source: ext.Operand[Any]
    range = optional(integers())
    result: ext.Result[Any]

    def problem(self) -> str | None:
        (target, source), span = self.inputs, self.range
        if span is not None and (len(span) != 2 or not 0 <= span[0] <= span[1]):
            return f"{list(span)} is no range"
        return same_type(target, self.tensor) or same_dtype(source, target)

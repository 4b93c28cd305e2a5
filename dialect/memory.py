"""Storage: buffers, views into them, copies and updates, all of them values."""

from typing import Any

from .fields import dim, flag, integers, optional, text
from .mlir import ext
from .operation import IdentityOp, KilnOp
from .rules import same_dtype, same_type


class PlaceholderOp(KilnOp, name="placeholder", traits=[ext.Pure]):
    """An input of the graph, in modules that have no function to carry it as an argument.

    `from_graph` maps every placeholder to an argument of `@graph` and emits none of these.
    """

    result: ext.Result[Any]


class BufferOp(KilnOp, name="buffer"):
    """Storage that nothing has written yet; its contents are unspecified (zeros in the reference).

    Each one is a storage of its own, so no two of them may be merged. A buffer that only declares where another node
    puts its result has no op.
    """

    size_in_elements = dim()
    device = text()
    result: ext.Result[Any]


class BufferViewOp(KilnOp, name="buffer_view", traits=[ext.Pure]):
    """`size` elements of the result's dtype in the bytes of the buffer's present value, from its element `offset` on.

    A view is a value too: it shows what the buffer holds at that point. After a write to the buffer, `from_graph`
    views the new value again for later readers of the view.
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
    """The target's value after one update of it: wholly, or the flat elements `begin <= i < end` of `range`.

    An assign node of several updates is a chain of these. The target operand is what the target held before, and the
    result is what every later read of the target sees; so the order of effects is in the operands, and an op whose
    result nobody reads has no effect. Whether the update happens in place is for the compiler to find out: it may,
    where the operand has no other use and is not an input.
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

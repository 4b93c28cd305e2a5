"""Changes of element type to that of the result."""

from typing import Any

from .mlir import ext
from .operation import KilnOp
from .rules import has_rank, same_shape


class CastOp(KilnOp, name="cast", traits=[ext.Pure]):
    """The same numbers in another type."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return same_shape(self.inputs[0].shape, self.tensor.shape)


class BitcastOp(KilnOp, name="bitcast", traits=[ext.Pure]):
    """The same little-endian bytes in another type; the last axis scales by the ratio of the sizes."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return has_rank(self.tensor, self.inputs[0].rank, "the result")

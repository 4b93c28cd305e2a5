"""Counter-based random bits."""

from typing import Any

from .mlir import ext
from .operation import KilnOp
from .rules import same_dtype, scalars_or_rank


class ThreefryOp(KilnOp, name="threefry", traits=[ext.Pure]):
    """Threefry-2x32 of 20 rounds: uint64 words, or int32 pairs (low, high) on a last axis of size 2."""

    ctr: ext.Operand[Any]
    key: ext.Operand[Any]
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return same_dtype(*self.inputs, self.tensor) or scalars_or_rank(self.inputs, self.tensor)

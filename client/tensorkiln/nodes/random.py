"""Counter-based random bits."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Var


class Threefry(Record):
    """Threefry-2x32 of 20 rounds: uint64 words, or int32 pairs (low, high) on a last axis of size 2."""

    node: Literal["threefry"] = "threefry"
    ctr_var: Var
    key_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.ctr_var, self.key_var)

"""Changes of element type."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Var


class Cast(Record):
    """The same numbers in another type; `dtype` equals `target_dtype`."""

    node: Literal["cast"] = "cast"
    in_var: Var
    target_dtype: DType
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Bitcast(Record):
    """The same little-endian bytes in another type; the last axis scales by the ratio of the sizes."""

    node: Literal["bitcast"] = "bitcast"
    in_var: Var
    target_dtype: DType
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)

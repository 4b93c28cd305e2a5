"""Values that stand in the graph itself."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import ScalarLiteral, Var


class ConstScalar(Record):
    """A scalar."""

    node: Literal["const_scalar"] = "const_scalar"
    value: ScalarLiteral
    dtype: DType
    out_var: Var

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class Vconst(Record):
    """A small table: one axis, or N-d in row-major order by the metadata of `out_var`."""

    node: Literal["vconst"] = "vconst"
    values: tuple[ScalarLiteral, ...]
    dtype: DType
    out_var: Var

    @property
    def operands(self) -> tuple[int, ...]:
        return ()

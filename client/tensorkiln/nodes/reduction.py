"""Sums of many: reductions, contractions, matrix tiles."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Axes, Integer, Natural, Var, Vars


class ReduceKind(StrEnum):
    SUM = "sum"
    MAX = "max"
    PROD = "prod"


class ReduceAxis(Record):
    """Reduces `axes`, in the dtype of the input.

    The metadata of `out_var` says whether the reduced axes stay with size 1 (also without metadata) or go.
    """

    node: Literal["reduce_axis"] = "reduce_axis"
    in_var: Var
    reduce_op_kind: ReduceKind
    axes: Axes
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Wmma(Record):
    """`a (m x k) @ b (k x n) + c (m x n)`, in the dtype of c."""

    node: Literal["wmma"] = "wmma"
    a_var: Var
    b_var: Var
    c_var: Var
    m: Natural
    n: Natural
    k: Natural
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.a_var, self.b_var, self.c_var)


class Contract(Record):
    """The tensor product of two inputs, summed over the axis pairs (i of the first, j of the second)."""

    node: Literal["contract"] = "contract"
    in_vars: Vars
    contraction_axes: tuple[tuple[Integer, Integer], ...]
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.in_vars

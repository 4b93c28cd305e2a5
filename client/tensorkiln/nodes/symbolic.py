"""Symbols: integers that a call gives by name."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Integer, Name, Var


class SymVar(Record):
    """A symbol and its inclusive bounds."""

    name: Name
    min_val: Integer
    max_val: Integer


class DefineVar(Record):
    """The value of a symbol as a scalar."""

    node: Literal["define_var"] = "define_var"
    sym_var: SymVar
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class Bind(Record):
    """Fixes the symbol whose `define_var` has the var `sym_var`; the value is `value`."""

    node: Literal["bind"] = "bind"
    sym_var: Var
    value: Integer
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.sym_var,)

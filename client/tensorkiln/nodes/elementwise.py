"""Element by element: arithmetic, comparison, logic, shifts, selection."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Var


class BinopKind(StrEnum):
    ADD = "add"
    MUL = "mul"
    SUB = "sub"
    DIV = "div"
    IDIV = "idiv"
    FDIV = "fdiv"
    MOD = "mod"
    POW = "pow"
    MAX = "max"
    MIN = "min"
    CMPLT = "cmplt"
    CMPNE = "cmpne"
    XOR = "xor"
    OR = "or"
    AND = "and"
    SHL = "shl"
    SHR = "shr"


class UnaryKind(StrEnum):
    """`trunc`, toward zero, is the one that the format has beyond those it began with."""

    NEG = "neg"
    LOG2 = "log2"
    EXP2 = "exp2"
    SIN = "sin"
    SQRT = "sqrt"
    RECIP = "recip"
    TRUNC = "trunc"


class TernaryKind(StrEnum):
    WHERE = "where"
    MULACC = "mulacc"


class Binop(Record):
    """`a op b`; either operand may be a scalar. `dtype` is the result's: bool or uint8 for a comparison."""

    node: Literal["binop"] = "binop"
    op: BinopKind
    a_var: Var
    b_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.a_var, self.b_var)


class Unary(Record):
    """`op in`."""

    node: Literal["unary"] = "unary"
    op: UnaryKind
    in_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Ternary(Record):
    """`where`: b where the condition a holds, else c. `mulacc`: a * b + c. Any operand may be a scalar."""

    node: Literal["ternary"] = "ternary"
    op: TernaryKind
    a_var: Var
    b_var: Var
    c_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.a_var, self.b_var, self.c_var)

"""Elementwise ops; an operand of rank 0 combines with a tensor of any shape."""

from typing import Any

from tensorkiln.nodes import BinopKind, TernaryKind, UnaryKind

from .fields import enum
from .mlir import ext
from .operation import KilnOp
from .rules import same_dtype, same_type, scalars_or_rank


class BinopOp(KilnOp, name="binop", traits=[ext.Pure]):
    """`a op b`; a comparison gives bool or uint8."""

    a: ext.Operand[Any]
    b: ext.Operand[Any]
    op = enum(BinopKind)
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return scalars_or_rank(self.inputs, self.tensor)


class UnaryOp(KilnOp, name="unary", traits=[ext.Pure]):
    """`op source`."""

    source: ext.Operand[Any]
    op = enum(UnaryKind)
    result: ext.Result[Any]

    def problem(self) -> str | None:
        return same_type(self.inputs[0], self.tensor)


class TernaryOp(KilnOp, name="ternary", traits=[ext.Pure]):
    """`where`: b where a holds, else c; `mulacc`: a * b + c."""

    a: ext.Operand[Any]
    b: ext.Operand[Any]
    c: ext.Operand[Any]
    op = enum(TernaryKind)
    result: ext.Result[Any]

    def problem(self) -> str | None:
        _, b, c = inputs = self.inputs
        return scalars_or_rank(inputs, self.tensor) or same_dtype(b, c, self.tensor)

"""A scalar under construction: Python operators that emit arith operations at the active insertion point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dialect.mlir import arith, ir, llvm, math
from tensorkiln.dtypes import DType

from .form import I32, Form, form_of


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """An SSA value and its form. A Python number as the other operand becomes a constant of the same form.

    `+ - *` wrap on integers. Comparisons give an i1; on floats they are false for NaN, except `differs`, which is true.
    Comparisons of integers are signed, except `below`.
    """

    value: ir.Value
    form: Form

    def literal(self, value: float) -> Number:
        """A constant of this number's form."""
        return literal(self.form, value)

    def operand(self, other: Number | float) -> Number:
        """A number unchanged; a Python number as a constant of this form."""
        return other if isinstance(other, Number) else literal(self.form, other)

    def __add__(self, other: Number | float) -> Number:
        emit = arith.addf if self.form.is_float else arith.addi
        return Number(emit(self.value, self.operand(other).value), self.form)

    def __sub__(self, other: Number | float) -> Number:
        emit = arith.subf if self.form.is_float else arith.subi
        return Number(emit(self.value, self.operand(other).value), self.form)

    def __rsub__(self, other: float) -> Number:
        return self.operand(other) - self

    def __mul__(self, other: Number | float) -> Number:
        emit = arith.mulf if self.form.is_float else arith.muli
        return Number(emit(self.value, self.operand(other).value), self.form)

    def __truediv__(self, other: Number | float) -> Number:
        return Number(arith.divf(self.value, self.operand(other).value), self.form)

    def __rtruediv__(self, other: float) -> Number:
        return self.operand(other) / self

    def __neg__(self) -> Number:
        return Number(arith.negf(self.value), self.form) if self.form.is_float else self.literal(0) - self

    def __and__(self, other: Number | int) -> Number:
        return Number(arith.andi(self.value, self.operand(other).value), self.form)

    def __or__(self, other: Number | int) -> Number:
        return Number(arith.ori(self.value, self.operand(other).value), self.form)

    def __xor__(self, other: Number | int) -> Number:
        return Number(arith.xori(self.value, self.operand(other).value), self.form)

    def __invert__(self) -> Number:
        return self ^ self.literal(-1)

    def __lshift__(self, amount: Number | int) -> Number:
        """Poison if the amount is not below the width."""
        return Number(arith.shli(self.value, self.operand(amount).value), self.form)

    def __rshift__(self, amount: Number | int) -> Number:
        """Logical shift. Poison if the amount is not below the width."""
        return Number(arith.shrui(self.value, self.operand(amount).value), self.form)

    def arithmetic_shift(self, amount: Number | int) -> Number:
        """Right shift with copies of the sign. Poison if the amount is not below the width."""
        return Number(arith.shrsi(self.value, self.operand(amount).value), self.form)

    def _compared(self, float_name: str, integer_name: str, other: Number | float) -> Number:
        right = self.operand(other).value
        if self.form.is_float:
            return self._truth(arith.cmpf(getattr(arith.CmpFPredicate, float_name), self.value, right))
        return self._truth(arith.cmpi(getattr(arith.CmpIPredicate, integer_name), self.value, right))

    def _truth(self, value: ir.Value) -> Number:
        return Number(value, BOOLEAN.over(self.form.lanes))

    def less(self, other: Number | float) -> Number:
        return self._compared("OLT", "slt", other)

    def greater(self, other: Number | float) -> Number:
        return self._compared("OGT", "sgt", other)

    def at_least(self, other: Number | float) -> Number:
        return self._compared("OGE", "sge", other)

    def equals(self, other: Number | float) -> Number:
        return self._compared("OEQ", "eq", other)

    def differs(self, other: Number | float) -> Number:
        return self._compared("UNE", "ne", other)

    def below(self, other: Number | int) -> Number:
        """Unsigned less, for integers."""
        return self._compared("OLT", "ult", other)

    def is_nan(self) -> Number:
        return self._truth(arith.cmpf(arith.CmpFPredicate.UNO, self.value, self.value))

    def absolute(self) -> Number:
        """The magnitude of a float."""
        return Number(math.absf(self.value), self.form)

    def square_root(self) -> Number:
        return Number(math.sqrt(self.value), self.form)

    def toward_zero(self) -> Number:
        """A float without its fraction. Without an instruction for it, this calls the maths library."""
        return Number(math.trunc(self.value), self.form)

    def bits(self) -> Number:
        """The bit pattern of a float."""
        return self.reinterpreted(self.form.integer)

    def reinterpreted(self, form: Form) -> Number:
        """The same bits in another form of the same width."""
        return self._converted(arith.bitcast, form)

    def zero_extended(self, form: Form) -> Number:
        return self._converted(arith.extui, form)

    def sign_extended(self, form: Form) -> Number:
        return self._converted(arith.extsi, form)

    def truncated(self, form: Form) -> Number:
        """The low bits of an integer."""
        return self._converted(arith.trunci, form)

    def widened(self, form: Form) -> Number:
        """A float in a wider form."""
        return self._converted(arith.extf, form)

    def narrowed(self, form: Form) -> Number:
        """A float rounded to a narrower form."""
        return self._converted(arith.truncf, form)

    def to_integer(self, form: Form) -> Number:
        """A float truncated to a signed integer. Poison unless it fits, so guard it first."""
        return self._converted(arith.fptosi, form)

    def to_nearest_integer(self) -> Number:
        """A float as a signed integer of 32 bits, ties to even; meaningless unless it fits."""
        form = I32.over(self.form.lanes)
        return Number(llvm.intr_lrint(form.type, self.value), form)

    def scaled(self, power: Number) -> Number:
        """A float times 2**power, rounded once. Without an instruction for it, this calls the maths library."""
        return Number(llvm.intr_ldexp(self.form.type, self.value, power.value), self.form)

    def to_float(self, form: Form, *, signed: bool) -> Number:
        """An integer rounded to a float."""
        return self._converted(arith.sitofp if signed else arith.uitofp, form)

    def _converted(self, emit: Callable[[ir.Type, ir.Value], ir.Value], form: Form) -> Number:
        """Convert to `form`, a form without lanes, with the lanes of this number."""
        form = form.over(self.form.lanes)
        return self if form == self.form else Number(emit(form.type, self.value), form)


BOOLEAN = Form("i1", 1)


def literal(form: Form, value: float) -> Number:
    """A constant; an integer is taken modulo its width, so patterns may be written in hexadecimal."""
    element = form.over(0).type
    if form.is_float:
        attribute: ir.Attribute = ir.FloatAttr.get(element, float(value))
    else:
        wrapped = int(value) & ((1 << form.bits) - 1)
        signed = wrapped - (1 << form.bits) if wrapped >> (form.bits - 1) else wrapped
        attribute = ir.IntegerAttr.get(element, signed)
    if form.lanes:
        attribute = ir.DenseElementsAttr.get_splat(form.type, attribute)
    return Number(arith.ConstantOp(form.type, attribute).result, form)


def constant(dtype: DType, value: float) -> ir.Value:
    """A value of `dtype`: a float is rounded to nearest even, an integer taken modulo its width, bool is `!= 0`.

    For a narrow dtype, the code of one of its values.
    """
    if dtype.is_narrow:
        value = np.array(value).astype(dtype.numpy).view(np.uint8).item()
    return literal(form_of(dtype), bool(value) if dtype.is_bool else value).value


def choose(condition: Number, if_true: Number | float, if_false: Number | float) -> Number:
    """A select; at least one of the two numbers is a Number."""
    model = if_true if isinstance(if_true, Number) else if_false
    if not isinstance(model, Number):
        raise TypeError("choose needs a Number to take the form from")
    left, right = model.operand(if_true), model.operand(if_false)
    return Number(arith.select(condition.value, left.value, right.value), model.form)


def constant_of(value: ir.Value) -> float | None:
    """The value of an `arith.constant`, or of each of its lanes if they are equal; integers as signed."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    literal = owner.attributes["value"]
    if not isinstance(literal, ir.DenseElementsAttr):
        return literal.value
    return literal.get_splat_value().value if literal.is_splat else None

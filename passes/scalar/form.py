"""The machine types of scalar code, for one value or a vector of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dialect.mlir import ir
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError


@dataclass(frozen=True, slots=True)
class Form:
    """A signless integer of `bits`, or an IEEE 754 float with `fraction` stored bits; `lanes` of them, or 0 for one."""

    name: str
    bits: int
    fraction: int = 0
    lanes: int = 0

    @property
    def is_float(self) -> bool:
        return self.fraction > 0

    @property
    def type(self) -> ir.Type:
        """The MLIR type, in the active context."""
        element = _FLOAT_TYPES[self.name].get() if self.is_float else ir.IntegerType.get_signless(self.bits)
        return ir.VectorType.get([self.lanes], element) if self.lanes else element

    def over(self, lanes: int) -> Form:
        """The same form with `lanes` lanes."""
        return self if lanes == self.lanes else replace(self, lanes=lanes)

    @property
    def integer(self) -> Form:
        """The integer form of the same width."""
        return integer(self.bits).over(self.lanes)

    @property
    def bias(self) -> int:
        """For a float: the exponent field of 1.0."""
        return (1 << (self.bits - self.fraction - 2)) - 1

    @property
    def infinity(self) -> int:
        """For a float: the bits of +inf."""
        return ((1 << self.bits) - 1) >> (self.fraction + 1) << self.fraction


I1, I8, I16, I32, I64 = (Form(f"i{bits}", bits) for bits in (1, 8, 16, 32, 64))
F16, BF16 = Form("f16", 16, 10), Form("bf16", 16, 7)
F32, F64 = Form("f32", 32, 23), Form("f64", 64, 52)

_FLOAT_TYPES = {"f16": ir.F16Type, "bf16": ir.BF16Type, "f32": ir.F32Type, "f64": ir.F64Type}
_INTEGERS = {form.bits: form for form in (I1, I8, I16, I32, I64)}
_FLOATS = {DType.FLOAT16: F16, DType.BFLOAT16: BF16, DType.FLOAT32: F32, DType.FLOAT64: F64}


def integer(bits: int) -> Form:
    """The integer of 1, 8, 16, 32 or 64 bits."""
    return _INTEGERS[bits]


def form_of(dtype: DType) -> Form:
    """The form that holds a dtype: bool as i1, integers as signless integers, narrow dtypes as a byte with their code.

    Raises UnsupportedGraphError for unit, which has no value.
    """
    if dtype is DType.UNIT:
        raise UnsupportedGraphError("a unit has no value to compute with: use its node as a dependency only")
    return _FLOATS[dtype] if dtype.is_float else integer(8 if dtype.is_narrow else dtype.bits)


def mlir_scalar(dtype: DType) -> ir.Type:
    """The MLIR type of one value of a dtype, in the active context. Raises as `form_of` does."""
    return form_of(dtype).type

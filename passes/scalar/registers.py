"""The type of a value in a kernel's registers, and as an element of a buffer."""

from __future__ import annotations

from dialect.mlir import arith, ir
from tensorkiln.dtypes import DType

from .form import mlir_scalar
from .number import constant as literal


def register_type(dtype: DType) -> ir.Type:
    """The type of a value in registers.

    A 16-bit float is held as its bits until it is computed with: to select or move one as a float, a code generator
    without instructions for it would convert to float32 and back, by calls that may even flush denormals.
    """
    return ir.IntegerType.get_signless(16) if dtype.is_half else mlir_scalar(dtype)


def to_register(dtype: DType, value: ir.Value) -> ir.Value:
    """A scalar, or a vector of them, in its register type."""
    return _retyped(register_type(dtype), value) if dtype.is_half else value


def to_scalar(dtype: DType, value: ir.Value) -> ir.Value:
    """A register value, or a vector of them, in the type to compute with."""
    return _retyped(mlir_scalar(dtype), value) if dtype.is_half else value


def _retyped(element: ir.Type, value: ir.Value) -> ir.Value:
    vectors = isinstance(value.type, ir.VectorType)
    return arith.bitcast(ir.VectorType.get(ir.VectorType(value.type).shape, element) if vectors else element, value)


def constant(dtype: DType, value: int | float | bool) -> ir.Value:
    """A literal in its register type."""
    return to_register(dtype, literal(dtype, value))


def zero(dtype: DType) -> ir.Value:
    """Zero, or False, in its register type."""
    return constant(dtype, False if dtype.is_bool else 0.0 if dtype.is_float else 0)


def stored_type(dtype: DType) -> ir.Type:
    """The element type of a buffer: a byte for a bool, else the register type."""
    return ir.IntegerType.get_signless(8) if dtype.is_bool else register_type(dtype)


def from_memory(dtype: DType, value: ir.Value) -> ir.Value:
    """The register value of a stored element, or of one in its register type; a bool is true for any nonzero byte."""
    if not dtype.is_bool or value.type == register_type(dtype):
        return value
    return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(value.type, 0))


def to_memory(dtype: DType, value: ir.Value) -> ir.Value:
    """The element to store for a value; a bool is stored as 0 or 1."""
    return arith.extui(stored_type(dtype), value) if dtype.is_bool else value

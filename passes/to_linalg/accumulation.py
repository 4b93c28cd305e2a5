"""What a reduction starts from and how it takes in one more value, of values as they travel."""

from __future__ import annotations

from dialect.mlir import ir
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType

from .memory import to_register, to_scalar


def identity(kind: str, dtype: DType) -> ir.Value:
    """The combination of nothing."""
    return to_register(dtype, scalar.reduce_identity(kind, dtype))


def combined(kind: str, dtype: DType, before: ir.Value, value: ir.Value, traits: Traits) -> ir.Value:
    """The combination of two values."""
    left, right = to_scalar(dtype, before), to_scalar(dtype, value)
    return to_register(dtype, scalar.reduce_combine(kind, dtype, left, right, traits=traits))

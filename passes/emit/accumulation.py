"""What a reduction starts from and how it takes in one more value, of values as they travel."""

from __future__ import annotations

from dataclasses import dataclass

from dialect.mlir import arith, ir
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType

from ..scalar.registers import to_register, to_scalar


def identity(kind: str, dtype: DType) -> ir.Value:
    """The combination of nothing."""
    return to_register(dtype, scalar.reduce_identity(kind, dtype))


def combined(kind: str, dtype: DType, before: ir.Value, value: ir.Value, traits: Traits) -> ir.Value:
    """The combination of two values."""
    left, right = to_scalar(dtype, before), to_scalar(dtype, value)
    return to_register(dtype, scalar.reduce_combine(kind, dtype, left, right, traits=traits))


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two values of `dtype`, to be summed. Where `rounding` is a narrower float, it is rounded to that."""

    dtype: DType
    rounding: DType | None
    traits: Traits

    def __str__(self) -> str:
        return str(self.dtype) if self.rounding is None else f"{self.dtype}_by_{self.rounding}"

    def added(self, left: ir.Value, right: ir.Value, accumulator: ir.Value) -> ir.Value:
        """`accumulator + left * right`. Numbers or vectors of them."""
        if not self.dtype.is_float:
            return arith.addi(accumulator, arith.muli(left, right))
        # Fused where the target can, two roundings elsewhere: the order of a sum is free, and so is its rounding.
        contract = arith.FastMathFlags.contract
        if self.rounding is None:
            return arith.addf(accumulator, arith.mulf(left, right, fastmath=contract), fastmath=contract)
        narrow = scalar.cast(self.dtype, self.rounding, arith.mulf(left, right), traits=self.traits)
        return arith.addf(accumulator, scalar.cast(self.rounding, self.dtype, narrow, traits=self.traits))

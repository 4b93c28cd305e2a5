"""What a reduction starts from, how it takes in one more value, of values as they travel, and what it comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dialect.mlir import arith, ir
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType

from ..scalar.registers import constant, register_type, to_register, to_scalar


def identity(kind: str, dtype: DType) -> ir.Value:
    """The combination of nothing."""
    return to_register(dtype, scalar.reduce_identity(kind, dtype))


def combined(kind: str, dtype: DType, before: ir.Value, value: ir.Value, traits: Traits) -> ir.Value:
    """The combination of two values."""
    left, right = to_scalar(dtype, before), to_scalar(dtype, value)
    return to_register(dtype, scalar.reduce_combine(kind, dtype, left, right, traits=traits))


class Accumulation(Protocol):
    """A reduction of a row in registers: a tuple of variables."""

    def kinds(self) -> list[ir.Type]:
        """The types of the variables."""
        ...

    def start(self) -> list[ir.Value]:
        """What they hold before the first value."""
        ...

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        """What they hold with one more value."""
        ...

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        """What all values come to."""
        ...


@dataclass(frozen=True, slots=True)
class One:
    """One variable that has what the values so far come to."""

    combine: str
    dtype: DType
    traits: Traits

    def kinds(self) -> list[ir.Type]:
        return [register_type(self.dtype)]

    def start(self) -> list[ir.Value]:
        return [identity(self.combine, self.dtype)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        return [combined(self.combine, self.dtype, before[0], value, self.traits)]

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        return held[0]


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest float32 or float64 where an instruction neither passes NaN on nor tells zeros apart.

    To mend that for each value makes a chain of five instructions. So the first variable has the largest number where
    there is no NaN, the second whether there is one, the third the sign bits that all values have: where the largest
    is zero, it is -0 if that is all there is.
    """

    dtype: DType

    def kinds(self) -> list[ir.Type]:
        return [register_type(self.dtype), _flag(), self._bits()]

    def start(self) -> list[ir.Value]:
        return [identity("max", self.dtype), arith.constant(_flag(), 0), arith.constant(self._bits(), -1)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        largest, has_nan, signs = before
        # Where a NaN is, what this says is not taken.
        numbers = arith.FastMathFlags.nnan | arith.FastMathFlags.nsz
        return [
            arith.maxnumf(largest, value, fastmath=numbers),
            arith.ori(has_nan, arith.cmpf(arith.CmpFPredicate.UNO, value, value)),
            arith.andi(signs, arith.bitcast(self._bits(), value)),
        ]

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        largest, has_nan, signs = held
        zero = arith.constant(self._bits(), 0)
        is_zero = arith.cmpf(arith.CmpFPredicate.OEQ, largest, arith.bitcast(largest.type, zero))
        lowest = arith.constant(self._bits(), -1 << self.dtype.bits - 1)
        zeros = arith.bitcast(largest.type, arith.andi(signs, lowest))
        return arith.select(has_nan, constant(self.dtype, math.nan), arith.select(is_zero, zeros, largest))

    def _bits(self) -> ir.Type:
        return ir.IntegerType.get_signless(self.dtype.bits)


@dataclass(frozen=True, slots=True)
class LikelyMaximum:
    """The largest float32 or float64 in two instructions, if the values make it certain.

    A sum of all is NaN where a value is. Where the largest is zero, it is not known which zero.
    """

    dtype: DType

    def kinds(self) -> list[ir.Type]:
        return [register_type(self.dtype)] * 2

    def start(self) -> list[ir.Value]:
        return [identity("max", self.dtype), constant(self.dtype, 0.0)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        largest, total = before
        numbers = arith.FastMathFlags.nnan | arith.FastMathFlags.nsz
        return [
            arith.maxnumf(largest, value, fastmath=numbers),
            arith.addf(total, value, fastmath=arith.FastMathFlags.reassoc),
        ]

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        return held[0]

    def is_certain(self, held: Sequence[ir.Value]) -> ir.Value:
        largest, total = held
        zero = constant(self.dtype, 0.0)
        has_none = arith.cmpf(arith.CmpFPredicate.ORD, total, total)
        # Where there is a NaN, the largest is undefined, and so is what it is compared with.
        return arith.select(has_none, arith.cmpf(arith.CmpFPredicate.ONE, largest, zero), arith.constant(_flag(), 0))


def accumulation_of(combine: str, dtype: DType, traits: Traits) -> Accumulation:
    """How a row is reduced."""
    is_wide = dtype in (DType.FLOAT32, DType.FLOAT64)
    return Maximum(dtype) if combine == "max" and is_wide and not traits.has_maximum else One(combine, dtype, traits)


def _flag() -> ir.Type:
    return ir.IntegerType.get_signless(1)


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

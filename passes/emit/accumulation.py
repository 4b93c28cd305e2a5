"""Reductions in registers: initial values, accumulation of one more value, and the final result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dialect.mlir import arith, ir, vector
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tensorkiln.nodes import ScatterKind

from ..scalar.registers import constant, to_register, to_scalar


def identity(kind: str, dtype: DType) -> ir.Value:
    """The identity of a reduction: its result over no values."""
    return to_register(dtype, scalar.reduce_identity(kind, dtype))


def combined(kind: str, dtype: DType, before: ir.Value, value: ir.Value, traits: Traits) -> ir.Value:
    """The combination of two values."""
    left, right = to_scalar(dtype, before), to_scalar(dtype, value)
    return to_register(dtype, scalar.reduce_combine(kind, dtype, left, right, traits=traits))


def updated(kind: str, dtype: DType, before: ir.Value, update: ir.Value, traits: Traits) -> ir.Value:
    """The element that a scatter stores for an update, given the element `before`, by a reduction other than `none`.

    They are register values of `dtype`, or vectors, except those of 16-bit floats.
    """
    assert kind != ScatterKind.NONE, "an update replaces the element"
    value = scalar.binop(kind, dtype, to_scalar(dtype, before), to_scalar(dtype, update), traits=traits)
    return value if isinstance(value.type, ir.VectorType) else to_register(dtype, value)


class _InFirst:
    """An accumulation whose first variable is the result so far.

    All variables here are scalars, or vectors if their initial values are spread over lanes.
    """

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        """The result of the reduction."""
        return held[0]


@dataclass(frozen=True, slots=True)
class One(_InFirst):
    """An accumulation in one variable."""

    combine: str
    dtype: DType
    traits: Traits

    def start(self) -> list[ir.Value]:
        """The initial values of the variables."""
        return [identity(self.combine, self.dtype)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        """The variables after one more value."""
        return [combined(self.combine, self.dtype, before[0], value, self.traits)]


@dataclass(frozen=True, slots=True)
class Maximum:
    """The float32 or float64 maximum for targets whose instruction neither propagates NaN nor orders zeros.

    Correcting each step would be a chain of five instructions. So the first variable holds the maximum, ignoring NaN;
    the second whether there was a NaN; the third the sign bits common to all values: if the maximum is zero, it is -0
    if all values are negative or -0.
    """

    dtype: DType

    def start(self) -> list[ir.Value]:
        return [identity("max", self.dtype), arith.constant(_flag(), 0), arith.constant(self._bits(), -1)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        largest, has_nan, signs = before
        # If there is a NaN, `result` ignores this value.
        numbers = arith.FastMathFlags.nnan | arith.FastMathFlags.nsz
        return [
            arith.maxnumf(largest, value, fastmath=numbers),
            arith.ori(has_nan, arith.cmpf(arith.CmpFPredicate.UNO, value, value)),
            arith.andi(signs, _bits_of(value)),
        ]

    def result(self, held: Sequence[ir.Value]) -> ir.Value:
        largest, has_nan, signs = held
        kind = largest.type
        is_zero = arith.cmpf(arith.CmpFPredicate.OEQ, largest, spread(constant(self.dtype, 0.0), kind))
        lowest = spread(arith.constant(self._bits(), -1 << self.dtype.bits - 1), kind)
        zeros = arith.bitcast(kind, arith.andi(signs, lowest))
        nan = spread(constant(self.dtype, math.nan), kind)
        return arith.select(has_nan, nan, arith.select(is_zero, zeros, largest))

    def _bits(self) -> ir.Type:
        return ir.IntegerType.get_signless(self.dtype.bits)


@dataclass(frozen=True, slots=True)
class NonnegativeMaximum(_InFirst):
    """The float32 or float64 maximum of at least one value, each +0, above it, or NaN.

    It is that of their bits, among which NaN of either sign is above all numbers.
    """

    dtype: DType

    def start(self) -> list[ir.Value]:
        return [constant(self.dtype, 0.0)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        return [arith.bitcast(value.type, arith.maxui(_bits_of(before[0]), _bits_of(value)))]


@dataclass(frozen=True, slots=True)
class LikelyMaximum(_InFirst):
    """A float32 or float64 maximum in two instructions per value, which may turn out uncertain.

    The sum of all values is NaN if any value is. If the maximum is zero, its sign is unknown.
    """

    dtype: DType

    def start(self) -> list[ir.Value]:
        return [identity("max", self.dtype), constant(self.dtype, 0.0)]

    def added(self, before: Sequence[ir.Value], value: ir.Value) -> list[ir.Value]:
        largest, total = before
        numbers = arith.FastMathFlags.nnan | arith.FastMathFlags.nsz
        return [
            arith.maxnumf(largest, value, fastmath=numbers),
            arith.addf(total, value, fastmath=arith.FastMathFlags.reassoc),
        ]

    def is_certain(self, held: Sequence[ir.Value]) -> ir.Value:
        largest, total = held
        zero = constant(self.dtype, 0.0)
        has_none = arith.cmpf(arith.CmpFPredicate.ORD, total, total)
        # With a NaN, the maximum is poison, and so is its comparison: select on the sum first.
        return arith.select(has_none, arith.cmpf(arith.CmpFPredicate.ONE, largest, zero), arith.constant(_flag(), 0))


Accumulation = One | Maximum | NonnegativeMaximum | LikelyMaximum
"""A reduction of a row in registers: a tuple of variables."""


def spread(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A scalar in each lane of a vector, if `kind` is a vector type; else the scalar unchanged."""
    if not isinstance(kind, ir.VectorType):
        return value
    return vector.BroadcastOp(ir.VectorType.get(kind.shape, value.type), value).result


def _bits_of(value: ir.Value) -> ir.Value:
    """The bit patterns of a float or of a vector of floats."""
    vectors = value.type if isinstance(value.type, ir.VectorType) else None
    word = ir.IntegerType.get_signless(ir.FloatType(vectors.element_type if vectors else value.type).width)
    return arith.bitcast(ir.VectorType.get(vectors.shape, word) if vectors else word, value)


def accumulation_of(combine: str, dtype: DType, traits: Traits) -> Accumulation:
    """The accumulation for a reduction of this kind and dtype."""
    is_wide = dtype in (DType.FLOAT32, DType.FLOAT64)
    return Maximum(dtype) if combine == "max" and is_wide and not traits.has_maximum else One(combine, dtype, traits)


def _flag() -> ir.Type:
    return ir.IntegerType.get_signless(1)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two values of `dtype`, to be summed, rounded first to `rounding`, a narrower float, if given."""

    dtype: DType
    rounding: DType | None
    traits: Traits

    def __str__(self) -> str:
        return str(self.dtype) if self.rounding is None else f"{self.dtype}_by_{self.rounding}"

    def added(self, left: ir.Value, right: ir.Value, accumulator: ir.Value) -> ir.Value:
        """`accumulator + left * right`, for scalars or vectors."""
        if not self.dtype.is_float:
            return arith.addi(accumulator, arith.muli(left, right))
        # A fused multiply-add if the target has one: the order of a sum is unspecified, and so is its rounding.
        contract = arith.FastMathFlags.contract
        if self.rounding is None:
            return arith.addf(accumulator, arith.mulf(left, right, fastmath=contract), fastmath=contract)
        narrow = scalar.cast(self.dtype, self.rounding, arith.mulf(left, right), traits=self.traits)
        return arith.addf(accumulator, scalar.cast(self.rounding, self.dtype, narrow, traits=self.traits))

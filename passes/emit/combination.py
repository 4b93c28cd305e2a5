"""The element that a scatter stores for an update, given the element at its place."""

from __future__ import annotations

from dialect.mlir import ir
from passes import scalar
from passes.scalar.registers import to_register, to_scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tensorkiln.nodes import ScatterKind


def combined(kind: str, dtype: DType, before: ir.Value, update: ir.Value, traits: Traits) -> ir.Value:
    """`before` and `update`, register values of `dtype`, combined by a reduction other than `none`.

    They may be vectors, except those of 16-bit floats.
    """
    assert kind != ScatterKind.NONE, "an update replaces the element"
    value = scalar.binop(kind, dtype, to_scalar(dtype, before), to_scalar(dtype, update), traits=traits)
    return value if isinstance(value.type, ir.VectorType) else to_register(dtype, value)

"""Constants: a literal of the wire format as a typed attribute, rounded once to its dtype, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.reference.precision import rounded
from tensorkiln.types import TensorType

from .mlir import ir
from .types import dtype_of, element_type

Literal = bool | int | float | str | None
"""A number, a truth value, one of the strings inf, -inf and nan, or None for unit."""

_INT64_VALUES = 1 << 64
_INT64_HALF = 1 << 63


def scalar_attribute(value: Literal, dtype: DType) -> ir.Attribute:
    """The literal as an attribute of its element type; for unit, which has no value, the unit attribute."""
    if dtype is DType.UNIT or value is None:
        return ir.UnitAttr.get()
    if dtype.wide.is_float:
        number = float(rounded(np.array(float(value)), dtype)) if dtype.is_narrow else float(value)
        return ir.FloatAttr.get(element_type(dtype), number)
    if dtype.is_bool:
        return ir.BoolAttr.get(bool(value))
    bits = int(value)
    # The bindings take the bits of any integer type as a signed number.
    return ir.IntegerAttr.get(element_type(dtype), bits - _INT64_VALUES if bits >= _INT64_HALF else bits)


def scalar_value(attribute: Any) -> bool | int | float | None:
    """The value of a `scalar_attribute`; a float as it was rounded."""
    if isinstance(attribute, ir.UnitAttr):
        return None
    return bool(attribute.value) if dtype_of(attribute.type).is_bool else attribute.value


def table_attribute(values: Sequence[Literal], table: TensorType) -> ir.Attribute:
    """The literals, in row-major order, as dense elements in the static shape of `table`; for unit, the unit attribute.

    bfloat16 and the narrow dtypes, which the bindings cannot read back, are stored as float32, int8 or uint8, which
    hold all their values.
    """
    if table.dtype is DType.UNIT:
        return ir.UnitAttr.get()
    array = _rounded(values, table.dtype)
    element = stored_dtype(table.dtype)
    stored = array if element.is_bool else array.view(f"u{element.itemsize}")
    return ir.DenseElementsAttr.get(stored, type=element_type(element), shape=list(table.shape))


def table_array(attribute: Any, table: TensorType) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of `table_attribute`, in the dtype and shape of `table`."""
    shape: Any = table.shape
    if isinstance(attribute, ir.UnitAttr):
        return np.zeros(shape, table.dtype.numpy)
    return np.array(attribute).astype(table.dtype.numpy).reshape(shape)


def stored_dtype(dtype: DType) -> DType:
    """The dtype in which a table of `dtype` is stored."""
    return DType.FLOAT32 if dtype is DType.BFLOAT16 else dtype.wide


def _rounded(values: Sequence[Literal], dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    if dtype.wide.is_float:
        # MLIR rounds once; NumPy would round to bfloat16 twice, via float32.
        values = [scalar_attribute(value, dtype).value for value in values]
    return np.array(values, stored_dtype(dtype).numpy)

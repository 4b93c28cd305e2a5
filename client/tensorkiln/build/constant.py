"""Constants in the wire format, checked against the range of their dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType
from .element_type import DTypeLike, element_type

MAX_TABLE_ELEMENTS = 1 << 16

_SEQUENCE_DTYPES = {"b": DType.BOOL, "i": DType.INT32, "f": DType.FLOAT32}

Refusal = Callable[[str], Exception]


def scalar_value(value: bool | int | float | np.generic, dtype: DType, refusal: Refusal) -> bool | int | float | str:
    """`value` as JSON: floats are rounded to the dtype, non-finite ones are "inf", "-inf" or "nan".

    Raises what `refusal` builds when the dtype cannot hold the value: a fraction in an integer, a number in a bool,
    a finite float that rounds to infinity, an integer out of range.
    """
    plain: object = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float) or isinstance(plain, bool) != dtype.is_bool:
        raise refusal(f"the constant {value!r} is not a value of {dtype}")
    if isinstance(plain, bool):
        return plain
    if dtype.wide.is_float:
        return _float_value(float(plain), dtype, refusal)
    if isinstance(plain, float) or not dtype.wide.is_integer:
        raise refusal(f"the constant {value!r} is not a value of {dtype}; cast the tensor or write an integer")
    if not dtype.min <= plain <= dtype.max:
        raise refusal(f"the constant {value!r} is outside the range [{dtype.min}, {dtype.max}] of {dtype}")
    return plain


def _float_value(value: float, dtype: DType, refusal: Refusal) -> float | str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(value).astype(dtype.numpy))
    if not math.isfinite(rounded) or (dtype.is_narrow and abs(value) > dtype.max):
        raise refusal(f"the constant {value!r} is outside the range of {dtype}")
    return rounded


def table_values(
    value: np.ndarray[Any, Any] | Sequence[Any], dtype: DTypeLike | None, refusal: Refusal
) -> tuple[np.ndarray[Any, Any], DType]:
    """The array of a table constant, and its dtype.

    A Python sequence without `dtype` becomes bool, int32 or float32, as a Python scalar does; an array keeps its own.
    Raises what `refusal` builds when there is no such dtype, or when the table is too large.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise refusal("the nested lists of a constant differ in length; give rows of equal length") from None
    if array.size > MAX_TABLE_ELEMENTS:
        raise refusal(f"a constant has at most {MAX_TABLE_ELEMENTS} elements, not {array.size}; make it an input")
    if dtype is None and not isinstance(value, np.ndarray) and array.dtype.kind in _SEQUENCE_DTYPES:
        return array, _SEQUENCE_DTYPES[array.dtype.kind]
    try:
        natural = DType.from_numpy(array.dtype)
    except KeyError:
        raise refusal(
            f"a constant is made of numbers or bools, and NumPy's {array.dtype} is not a dtype of graphs"
        ) from None
    return array, natural if dtype is None else element_type(dtype, refusal)

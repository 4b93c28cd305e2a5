"""The elements of a constant as an array."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dialect.mlir import ir
from tensorkiln.dtypes import DType

_NUMBER: Final = re.compile(r"0x[0-9A-Fa-f]+|-?[0-9][0-9.eE+-]*")


def splat_value(value: Any, dtype: DType) -> npt.NDArray[Any]:
    """The value of every element, rank 0."""
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.asarray(float(ir.FloatAttr(value).value)).astype(dtype.numpy)
    if dtype.is_bool:
        return np.asarray(bool(ir.BoolAttr(value).value))
    return np.asarray(int(ir.IntegerAttr(value).value)).astype(dtype.numpy)


def array_of(attribute: Any, dtype: DType) -> npt.NDArray[Any]:
    """All elements in row-major order, rank 1."""
    if dtype is not DType.BFLOAT16:
        return np.array(attribute).astype(dtype.numpy).reshape(-1)
    # The bindings give access only to the text: numbers, or all bytes in hexadecimal.
    text = str(attribute).partition("<")[2].rpartition("> :")[0]
    if text.startswith('"'):
        return np.frombuffer(bytes.fromhex(text.strip('"')[2:]), dtype.numpy)
    return np.array([_number(each, dtype) for each in _NUMBER.findall(text)], dtype.numpy)


def _number(text: str, dtype: DType) -> Any:
    """Parse a number; infinities and NaN are written as hexadecimal bits."""
    if not text.startswith("0x"):
        return float(text)
    return np.array([int(text, 16)], f"u{dtype.itemsize}").view(dtype.numpy)[0]

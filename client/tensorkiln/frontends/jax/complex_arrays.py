"""Conversion between complex arrays and a program's arrays, which have the parts on a last axis of 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import DType
from ...errors import CallInputError

Array: TypeAlias = "np.ndarray[Any, Any]"

COMPLEX: Final = {"complex64": DType.FLOAT32, "complex128": DType.FLOAT64}
"""The type of each part, by JAX's name of the element type."""


def numpy_of(part: DType) -> np.dtype[Any]:
    """The complex dtype whose parts have this dtype."""
    return np.result_type(part.numpy, np.complex64)


def as_pairs(value: Any, part: DType, name: Callable[[], str]) -> Any:
    """Convert a complex array for a program, without a copy if it is contiguous; one on a GPU is returned as it is.

    A number takes the dtype of its argument; an array must have it already: CallInputError, with the argument's name.
    """
    if hasattr(value, "__cuda_array_interface__"):
        return value
    wanted = numpy_of(part)
    array = np.asarray(value, wanted) if isinstance(value, int | float | complex) else np.asarray(value)
    if array.dtype != wanted:
        raise CallInputError(f"{name()} is {array.dtype}; the function takes {wanted}")
    return np.ascontiguousarray(array).reshape([*array.shape, 1]).view(part.numpy)


def from_pairs(value: Any) -> Any:
    """Convert a program's result to a complex array; one on a GPU is returned as it is."""
    if not isinstance(value, np.ndarray):
        return value
    array: Array = value
    return np.ascontiguousarray(array).view(numpy_of(DType.from_numpy(array.dtype))).reshape(array.shape[:-1])

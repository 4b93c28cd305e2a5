"""Conversion of dtype arguments: tensorkiln's by name, or NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..dtypes import DType
from ..nearest import DTYPE_NAMES, did_you_mean, quoted

DTypeLike: TypeAlias = "DType | str | np.dtype[Any] | type[np.generic]"
"""`DType.FLOAT32`, `"float32"`, `np.float32` or `np.dtype("float32")`; ml_dtypes has those that NumPy lacks."""

_OF_PYTHON: dict[type, str] = {float: "float32 or float64", int: "int32 or int64", bool: "bool"}


def element_type(dtype: DTypeLike, refusal: Callable[[str], Exception]) -> DType:
    """Convert to a DType. Raises the error that `refusal` builds for any other value, with a suggestion."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        found = _BY_NAME.get(dtype)
        if found is not None:
            return found
        raise refusal(f"{quoted(dtype)} is not a dtype{did_you_mean(dtype, DType, DTYPE_NAMES) or _KNOWN}")
    if (widths := _OF_PYTHON.get(dtype) if isinstance(dtype, type) else None) is not None:
        raise refusal(f"Python's {getattr(dtype, '__name__', '')} does not say its width: write {widths}")
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are users
        named = np.dtype(dtype)
        try:
            return DType.from_numpy(named)
        except KeyError:
            raise refusal(f"there is no dtype for NumPy's {named}{did_you_mean(named.name, DType) or _KNOWN}") from None
    text = str(dtype)
    if text.startswith(("torch.", "<dtype: '", "jax")) or hasattr(dtype, "as_numpy_dtype"):
        raise refusal(f"{quoted(text)} is not a dtype{did_you_mean(text, DType, DTYPE_NAMES) or _KNOWN}")
    raise refusal(f"the dtype comes before the shape: a name such as 'float32' or a NumPy dtype, not {quoted(dtype)}")


_BY_NAME = {dtype.value: dtype for dtype in DType}
_KNOWN = f"; known are {', '.join(DType)}"

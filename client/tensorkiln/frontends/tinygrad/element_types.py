"""Conversion of element types, including tinygrad's open (weak) types, which an operation resolves."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .installed import installed


@cache
def _pairs() -> dict[Any, DType]:
    dtypes = installed().dtypes
    names = {dtype.value: dtype for dtype in DType if dtype is not DType.UNIT and not dtype.is_narrow}
    names |= {
        "fp8e4m3": DType.FLOAT8_E4M3FN,
        "fp8e5m2": DType.FLOAT8_E5M2,
        "fp8e4m3fnuz": DType.FLOAT8_E4M3FNUZ,
        "fp8e5m2fnuz": DType.FLOAT8_E5M2FNUZ,
    }
    return {getattr(dtypes, name): dtype for name, dtype in names.items() if hasattr(dtypes, name)}


def dtype_of(uop: Any) -> DType:
    """The element type of a value; for an open type, its default.

    UnsupportedGraphError for a type that graphs do not have.
    """
    return named(default(uop))


def named(dtype: Any) -> DType:
    """The DType of a tinygrad type. UnsupportedGraphError when there is none."""
    found = _pairs().get(dtype)
    if found is None:
        raise UnsupportedGraphError(f"the element type {dtype} is not supported")
    return found


def theirs(dtype: DType) -> Any:
    """The tinygrad type of a DType."""
    return next(each for each, own in _pairs().items() if own is dtype)


def is_open(uop: Any) -> bool:
    """Whether the element type is open, as for a Python number: its consumer determines it."""
    return uop.dtype in installed().dtypes.weaks


def default(uop: Any) -> Any:
    """The tinygrad type of a value; for an open type, its default."""
    dtypes = installed().dtypes
    if uop.dtype is dtypes.weakfloat:
        return dtypes.default_float
    if uop.dtype is dtypes.weakint:
        return dtypes.int64 if uop.overflows(dtypes.int32) else dtypes.default_int
    return uop.dtype


def widened(uop: Any, target: Any) -> DType:
    """The type in which to compute an open value before its cast to `target`: at least its default type."""
    module = installed("tinygrad.dtype")
    if module.weak_dtype(target) is not uop.dtype:
        return named(default(uop))
    return named(module.least_upper_dtype(target, default(uop)))


def meeting(*uops: Any) -> DType:
    """The common type for a comparison. UnsupportedGraphError when a float is compared in an integer type."""
    settled = [uop for uop in uops if not is_open(uop)]
    module = installed("tinygrad.dtype")
    found = named(module.least_upper_dtype(*(default(uop) for uop in settled or uops)))
    if any(dtype_of(uop).is_float for uop in uops) and not found.is_float:
        raise UnsupportedGraphError(f"a float is compared with a value of {found}")
    return found

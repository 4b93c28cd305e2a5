"""tinygrad's element types and ours, and the types that it leaves open until an operation decides."""

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
    """The element type of a value: where tinygrad leaves it open, the one that it has by itself.

    UnsupportedGraphError for one that graphs have not.
    """
    return named(default(uop))


def named(dtype: Any) -> DType:
    """Our element type for tinygrad's. UnsupportedGraphError where there is none."""
    found = _pairs().get(dtype)
    if found is None:
        raise UnsupportedGraphError(f"the element type {dtype} is not supported")
    return found


def theirs(dtype: DType) -> Any:
    """tinygrad's element type for ours."""
    return next(each for each, own in _pairs().items() if own is dtype)


def is_open(uop: Any) -> bool:
    """Whether the element type is what the consumer needs: that of a Python number."""
    return uop.dtype in installed().dtypes.weaks


def default(uop: Any) -> Any:
    """tinygrad's element type of a value; of an open one, the one that it has when nothing else decides."""
    dtypes = installed().dtypes
    if uop.dtype is dtypes.weakfloat:
        return dtypes.default_float
    if uop.dtype is dtypes.weakint:
        return dtypes.int64 if uop.overflows(dtypes.int32) else dtypes.default_int
    return uop.dtype


def widened(uop: Any, target: Any) -> DType:
    """At which type an open value is computed that is then converted to `target`: never a smaller one than its own."""
    module = installed("tinygrad.dtype")
    if module.weak_dtype(target) is not uop.dtype:
        return named(default(uop))
    return named(module.least_upper_dtype(target, default(uop)))


def meeting(*uops: Any) -> DType:
    """The type in which values are compared. UnsupportedGraphError when it lacks values of one of them."""
    settled = [uop for uop in uops if not is_open(uop)]
    module = installed("tinygrad.dtype")
    found = named(module.least_upper_dtype(*(default(uop) for uop in settled or uops)))
    if any(dtype_of(uop).is_float for uop in uops) and not found.is_float:
        raise UnsupportedGraphError(f"a float is compared with a value of {found}")
    return found

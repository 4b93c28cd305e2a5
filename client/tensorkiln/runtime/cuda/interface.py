"""`__cuda_array_interface__`, version 3, as Numba's documentation defines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CallInputError


@dataclass(frozen=True, slots=True)
class Described:
    """An array of another library on a device; `stream` is the stream to wait for, None when it is ready."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    stream: int | None


def describe(what: str, interface: Mapping[str, Any]) -> Described:
    """Parse the interface of `what`. CallInputError when it is malformed, has a mask or the ambiguous stream 0."""
    try:
        (address, _), strides, stream = interface["data"], interface.get("strides"), interface.get("stream")
        described = Described(
            address=int(address or 0),
            dtype=np.dtype(interface["typestr"]),
            shape=tuple(int(size) for size in interface["shape"]),
            strides=None if strides is None else tuple(int(stride) for stride in strides),
            stream=None if stream is None else int(stream),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CallInputError(f"{what} has a __cuda_array_interface__ that is not well-formed: {error!r}") from error
    if interface.get("mask") is not None:
        raise CallInputError(f"{what} is a masked array; pass its data")
    if described.stream == 0:
        raise CallInputError(f"{what} names the stream 0, which __cuda_array_interface__ forbids as ambiguous")
    return described


def interface_of(address: int, dtype: np.dtype[Any], shape: tuple[int, ...], stream: int) -> dict[str, Any]:
    """The interface of a row-major array that `stream` writes. AttributeError for a dtype without a typestr."""
    # ml_dtypes' float8_e5m2 has NumPy's kind "f", as if it had a standard typestr.
    if dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize == 1):
        raise AttributeError(f"__cuda_array_interface__ has no name for {dtype}; use DLPack")
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (address if 0 not in shape else 0, False),
        "strides": None,
        "stream": stream,
        "version": 3,
    }


def is_row_major(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> bool:
    """Whether the strides are row-major. They are in the unit of `itemsize`: 1 for strides in elements."""
    if strides is None or 0 in shape:
        return True
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True

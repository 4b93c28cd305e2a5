"""The arrays of a call as the kernels of the host take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import CallInputError
from .arguments import InputSpec, mismatch, require_count
from .memory import Array, address_of, no_room


def accept(specs: Sequence[InputSpec], arrays: Sequence[Any]) -> tuple[list[Array], list[int]]:
    """The arrays as the kernels take them, and their addresses; only one that is not C-contiguous is copied.

    CallInputError when there are too few or too many, or one has another dtype or shape; DeviceError when there is no
    room for a copy.
    """
    require_count(specs, arrays)
    accepted: list[Array] = []
    addresses: list[int] = []
    for spec, given in zip(specs, arrays, strict=True):
        array = given
        if type(array) is not np.ndarray:
            array = as_host_array(spec, array)
        if array.dtype != spec.dtype or array.shape != spec.shape:
            raise mismatch(spec, array.dtype, array.shape)
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            array = _contiguous(spec, array)
        accepted.append(array)
        addresses.append(address_of(array))
    return accepted, addresses


def _contiguous(spec: InputSpec, array: Array) -> Array:
    try:
        return np.array(array, order="C")
    except MemoryError as error:
        raise no_room(f"a contiguous copy of {spec} takes", array.nbytes) from error


def as_host_array(spec: InputSpec, given: Any) -> Array:
    """`given` as an array in the memory of the host. CallInputError when it is none."""
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(given)
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    raise CallInputError(f"{spec} is a {type(given).__name__}; pass an array of dtype {spec.dtype}")

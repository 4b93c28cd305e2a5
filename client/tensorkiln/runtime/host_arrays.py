"""Conversion of a call's arrays for the kernels of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import CallInputError
from .arguments import InputSpec, mismatch, require_count
from .memory import Array, address_of, no_room
from .plan import OutputSpec


def accept(specs: Sequence[InputSpec], arrays: Sequence[Any]) -> tuple[list[Array], list[int]]:
    """The arrays as kernels take them, and their addresses. Arrays that are not C-contiguous and aligned are copied.

    CallInputError for too few or too many arrays, a wrong dtype or a wrong shape; DeviceError when there is no room for
    a copy.
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
    """`given` as an array in host memory. CallInputError when it is not an array."""
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(given)
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    raise CallInputError(f"{spec} is a {type(given).__name__}; pass an array of dtype {spec.dtype}")


def accept_results(specs: Sequence[OutputSpec], arrays: Sequence[Any], read: Sequence[Array]) -> list[int]:
    """The addresses of the arrays for a call's results; `read` are the arrays that the call reads.

    CallInputError for too few or too many arrays, a wrong dtype or shape, and an array that is not C-contiguous,
    aligned and writeable, or that shares memory with another result or with one in `read`.
    """
    if len(arrays) != len(specs):
        raise CallInputError(f"the program has {len(specs)} outputs, got {len(arrays)} arrays for them")
    taken = [(*_span(array), "an array that the call reads") for array in read]
    for position, (spec, array) in enumerate(zip(specs, arrays, strict=True)):
        _require_writable(position, spec, array)
        start, end = _span(array)
        for other_start, other_end, what in taken:
            if start < other_end and other_start < end:
                raise CallInputError(f"the array for output {position} shares memory with {what}; pass one of its own")
        taken.append((start, end, f"that for output {position}"))
    return [start for start, _, _ in taken[len(read) :]]


def _require_writable(position: int, spec: OutputSpec, array: Any) -> None:
    what = f"the array for output {position}"
    if type(array) is not np.ndarray:
        raise CallInputError(f"{what} is a {type(array).__name__}; pass a NumPy array of dtype {spec.dtype}")
    if array.dtype != spec.dtype or array.shape != spec.shape:
        stated = f"the dtype {array.dtype} and the shape {array.shape}"
        raise CallInputError(f"{what} has {stated}, but the output has {spec.dtype} and {spec.shape}")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        wanted = {"C-contiguous": flags.c_contiguous, "aligned": flags.aligned, "writeable": flags.writeable}
        lacks = " and ".join(name for name, there in wanted.items() if not there)
        raise CallInputError(f"{what} is not {lacks}; pass an array as numpy.empty makes it")


def _span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of a contiguous array and of the byte after its last."""
    start = address_of(array)
    return start, start + array.nbytes

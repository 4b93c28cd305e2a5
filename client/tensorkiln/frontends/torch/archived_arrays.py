"""Weights and constants of an archive, from the bytes of storages and the layouts of tensors in them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from ...errors import InvalidGraphError, UnsupportedGraphError
from ...stored_entries import StoredEntries
from .element_types import BY_NUMBER, dtype_named
from .exported import Array

MAX_CONFIG_BYTES: Final = 1 << 26
"""The most bytes of the JSON text with the layouts of tensors."""
MAX_REPEATED_BYTES: Final = 1 << 26
"""The most bytes of tensors beyond the size of the archive, which tensors with repeated (overlapping) elements need."""


def arrays_of(archive: StoredEntries, root: str, name: str) -> dict[str, Array]:
    """Every parameter, buffer and constant by qualified name, contiguous and read-only; equal ones share an array.

    UnsupportedGraphError for pickled values, unsupported element types, and tensors that repeat their elements too
    often; InvalidGraphError for a tensor outside its storage.
    """
    found: dict[str, Array] = {}
    left = archive.size + MAX_REPEATED_BYTES
    for kind in ("weights", "constants"):
        path = f"{root}/data/{kind}/{name}_{kind}_config.json"
        if path not in archive:
            continue
        storages: dict[str, bytes] = {}
        known: dict[Hashable, Array] = {}
        for target, entry in archive.json_object(path, MAX_CONFIG_BYTES, "config_bytes")["config"].items():
            if entry["use_pickle"] or entry["tensor_meta"] is None:
                raise UnsupportedGraphError(f"{target!r} is pickled, which only torch reads; give the ExportedProgram")
            place = entry["path_name"]
            if not isinstance(place, str):
                raise InvalidGraphError(f"{target!r} has no path in the archive")
            if place not in storages:
                storages[place] = archive.content(f"{root}/data/{kind}/{place}")
            dtype, sizes, strides, offset = _lying(entry["tensor_meta"], target)
            key = place, dtype.str, dtype.name, sizes, strides, offset
            if key not in known:
                left -= math.prod(sizes) * dtype.itemsize
                if left < 0:
                    raise UnsupportedGraphError(
                        f"{target!r} and those before it are by more than {MAX_REPEATED_BYTES} bytes larger than the "
                        "archive: their elements repeat; give the ExportedProgram"
                    )
                known[key] = _array(storages[place], dtype, sizes, strides, offset, target)
            found[target] = known[key]
    return found


def _lying(meta: dict[str, Any], target: str) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...], int]:
    """Element type, sizes, strides and offset. InvalidGraphError for invalid ones."""
    spelled = BY_NUMBER.get(meta["dtype"], "unknown")
    dtype = dtype_named(spelled)
    if dtype is None:
        raise UnsupportedGraphError(f"{target!r} is of {spelled}, an element type that is not supported")
    sizes, strides = (tuple(_known(each, target) for each in meta[field]) for field in ("sizes", "strides"))
    offset = _known(meta["storage_offset"], target)
    if len(sizes) != len(strides) or min([offset, *sizes, *strides]) < 0:
        raise InvalidGraphError(f"{target!r} lies outside of the archive: its sizes or strides are those of no tensor")
    return dtype.numpy, sizes, strides, offset


def _array(
    storage: bytes, dtype: np.dtype[Any], sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, target: str
) -> Array:
    whole = np.frombuffer(storage, dtype)
    if 0 in sizes:
        return np.zeros(sizes, dtype)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if last >= whole.size:
        raise InvalidGraphError(f"{target!r} lies outside of the {whole.size} elements that the archive holds of it")
    steps = [stride * whole.itemsize for stride in strides]
    return np.array(np.lib.stride_tricks.as_strided(whole[offset:], sizes, steps, writeable=False), order="C")


def _known(value: dict[str, Any], target: str) -> int:
    found = value.get("as_int")
    if not isinstance(found, int) or isinstance(found, bool):
        raise InvalidGraphError(f"{target!r} has a size that is not known")
    return found

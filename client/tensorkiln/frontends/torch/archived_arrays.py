"""Weights and constants of an archive: the bytes of their storages, and how a tensor lies in one."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import numpy as np

from ...errors import InvalidGraphError, UnsupportedGraphError
from .element_types import BY_NUMBER, dtype_named
from .exported import Array


def arrays_of(archive: zipfile.ZipFile, root: str, name: str) -> dict[str, Array]:
    """Every parameter, buffer and constant by its qualified name, contiguous and read-only.

    UnsupportedGraphError for what is pickled and for element types that graphs lack; InvalidGraphError for a tensor
    that lies outside of its bytes.
    """
    found: dict[str, Array] = {}
    for kind in ("weights", "constants"):
        path = f"{root}/data/{kind}/{name}_{kind}_config.json"
        if path not in archive.NameToInfo:
            continue
        storages: dict[str, bytes] = {}
        for target, entry in json.loads(archive.read(path))["config"].items():
            if entry["use_pickle"] or entry["tensor_meta"] is None:
                raise UnsupportedGraphError(f"{target!r} is pickled, which only torch reads; give the ExportedProgram")
            place = entry["path_name"]
            if place not in storages:
                storages[place] = archive.read(f"{root}/data/{kind}/{place}")
            found[target] = _array(storages[place], entry["tensor_meta"], target)
    return found


def _array(storage: bytes, meta: dict[str, Any], target: str) -> Array:
    spelled = BY_NUMBER.get(meta["dtype"], "unknown")
    dtype = dtype_named(spelled)
    if dtype is None:
        raise UnsupportedGraphError(f"{target!r} is of {spelled}, an element type that is not supported")
    sizes, strides = ([_known(each, target) for each in meta[field]] for field in ("sizes", "strides"))
    offset = _known(meta["storage_offset"], target)
    whole = np.frombuffer(storage, dtype.numpy)
    if 0 in sizes:
        return np.zeros(sizes, dtype.numpy)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if min([offset, *sizes, *strides], default=0) < 0 or last >= whole.size:
        raise InvalidGraphError(f"{target!r} lies outside of the {whole.size} elements that the archive holds of it")
    steps = [stride * whole.itemsize for stride in strides]
    return np.array(np.lib.stride_tricks.as_strided(whole[offset:], sizes, steps, writeable=False), order="C")


def _known(value: dict[str, Any], target: str) -> int:
    found = value.get("as_int")
    if not isinstance(found, int):
        raise InvalidGraphError(f"{target!r} has a size that is not known")
    return found

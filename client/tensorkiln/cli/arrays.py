"""Arrays in and out of files: `.npy` holds one, `.npz` several in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.lib.npyio import NpzFile

from ..dtypes import DType
from ..errors import CallInputError, RequestError


def read_arrays(paths: Sequence[Path]) -> list[np.ndarray]:
    """The arrays of all files, in order. `RequestError` for a file that is not an array of numbers."""
    return [array for path in paths for array in _read(path)]


def _read(path: Path) -> list[np.ndarray]:
    try:
        loaded = cast("np.ndarray | NpzFile", np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise RequestError(f"{path} cannot be read as .npy or .npz: {error}") from None
    if isinstance(loaded, np.ndarray):
        return [loaded]
    with loaded as several:
        return [several[name] for name in several.files]


def as_dtype(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The same bytes as `dtype` where the file format has no name for it: NumPy stores bfloat16 as two plain bytes."""
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype.numpy)
    return array


def random_array(dtype: DType, shape: Sequence[int], generator: np.random.Generator) -> np.ndarray:
    """Standard normal floats; 0 and 1 for integers and bools, which are also legal indices of most things."""
    if dtype.is_float:
        return generator.standard_normal(tuple(shape)).astype(dtype.numpy)
    return generator.integers(0, 2, tuple(shape)).astype(dtype.numpy)


def write_arrays(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """`.npz` takes any number, named output_0, output_1, …; `.npy` exactly one."""
    if path.suffix == ".npz":
        named: dict[str, Any] = {f"output_{index}": array for index, array in enumerate(arrays)}
        np.savez(path, **named)
    elif path.suffix == ".npy" and len(arrays) == 1:
        np.save(path, arrays[0])
    elif path.suffix == ".npy":
        raise CallInputError(f"{path} holds one array and the program has {len(arrays)} outputs; write to .npz.")
    else:
        raise RequestError(f"{path}: outputs are written to .npy or .npz.")

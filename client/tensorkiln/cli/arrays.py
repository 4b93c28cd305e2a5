"""Reading and writing of array files: `.npy` holds one array, `.npz` several in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib.npyio import NpzFile

from ..dtypes import DType
from ..errors import CallInputError, RequestError
from .out_file import out_file


def read_arrays(paths: Sequence[Path]) -> list[np.ndarray]:
    """The arrays of all files, in order.

    OSError for a file that cannot be opened, `RequestError` for one that is not an array of numbers.
    """
    return [array for path in paths for array in _read(path)]


def _read(path: Path) -> list[np.ndarray]:
    with open(path, "rb") as file:
        try:
            loaded = cast("np.ndarray | NpzFile", np.load(file, allow_pickle=False))
            if isinstance(loaded, np.ndarray):
                return [loaded]
            with loaded as several:
                return [_member(several, name) for name in several.files]
        # A damaged file may raise errors of NumPy, zipfile, zlib, ast or tokenize.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise RequestError(f"{path} cannot be read as .npy or .npz: {reason}") from None


def _member(several: NpzFile, name: str) -> np.ndarray:
    member: Any = several[name]
    if not isinstance(member, np.ndarray):
        raise ValueError(f"its member {name} is not an array")
    return member


def as_dtype(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The same bytes as `dtype` where the file format has no name for it: NumPy stores bfloat16 as two plain bytes,
    and a narrow dtype as one.
    """
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype.numpy)
    return array


class _Plain:
    """Hides a real file from NumPy, which would write to it directly without reporting failures."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, content: bytes, /) -> int:
        return self._file.write(content)


def _storable(array: np.ndarray) -> np.ndarray:
    # NumPy would write float8_e5m2 as a float of one byte, which it cannot read.
    return array.view("V1") if array.dtype.kind == "f" and array.dtype.itemsize == 1 else array


def write_arrays(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """`.npz` takes any number, named output_0, output_1, …; `.npy` exactly one. OSError when it cannot be written."""
    arrays = [_storable(array) for array in arrays]
    if path.suffix == ".npz":
        named: dict[str, Any] = {f"output_{index}": array for index, array in enumerate(arrays)}
        with out_file(path) as file:
            np.savez(file, **named)
    elif path.suffix == ".npy" and len(arrays) == 1:
        with out_file(path) as file:
            np.save(_Plain(file), arrays[0])
    elif path.suffix == ".npy":
        raise CallInputError(f"{path} holds one array and the program has {len(arrays)} outputs; write to .npz.")
    else:
        raise RequestError(f"{path}: outputs are written to .npy or .npz.")

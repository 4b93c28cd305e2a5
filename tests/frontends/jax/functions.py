"""The exported functions of `files`, with what JAX gives for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

FILES: Final = Path(__file__).parent / "files"
SYMBOLS: Final = {"n": (1, 16), "m": (1, 16)}
"""The bounds of the symbolic sizes."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function as JAX exports it."""

    family: str
    name: str

    def __str__(self) -> str:
        return f"{self.family}-{self.name}"

    @property
    def path(self) -> Path:
        return FILES / self.family / f"{self.name}.jax"

    def samples(self) -> Iterator[tuple[list[Array], list[Array]]]:
        """The leaves of arguments and of JAX's results, for each size."""
        arrays = _samples(self.family)
        place = 0
        while any(name.startswith(f"{self.name}.{place}.") for name in arrays):
            yield _leaves(arrays, f"{self.name}.{place}.in"), _leaves(arrays, f"{self.name}.{place}.out")
            place += 1


def _leaves(arrays: dict[str, Array], prefix: str) -> list[Array]:
    found: list[Array] = []
    while (array := arrays.get(f"{prefix}{len(found)}")) is not None:
        found.append(array)
    return found


@cache
def _samples(family: str) -> dict[str, Array]:
    with np.load(FILES / family / "samples.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def in_dtype(array: Array, dtype: str) -> Array:
    """An array of a file in its dtype: NumPy has no name for bfloat16, which lies there as its bits."""
    return array.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else array


EXPORTED: Final = tuple(Function(path.parent.name, path.stem) for path in sorted(FILES.glob("*/*.jax")))

"""The type of a value, and canonical device names."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import DType
from .expr import Dim


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, shape (one `Dim` per axis; `()` is a scalar) and device of a value.

    `device` is None when the graph names none: the value is on the device where the program runs.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    device: str | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


def canonical_device(name: str) -> str:
    """The canonical device name: upper case, and device 0 without its number (`cuda:0` is `CUDA`)."""
    return name.upper().removesuffix(":0")

"""The type of a value, and the one spelling of a device name."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import DType
from .expr import Dim


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, shape (one `Dim` per axis; `()` is a scalar) and device of a value.

    `device` is None where nothing names one: the value lives wherever the program runs.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    device: str | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


def canonical_device(name: str) -> str:
    """The one spelling of a device name: upper case, and device 0 without its number (`cuda:0` is `CUDA`)."""
    return name.upper().removesuffix(":0")

"""The steps of a plan, with all sizes known, and addresses relative to the memory of a call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..launch import LaunchDims
from ..nodes import CustomAttr
from .address import Address
from .memory import Array


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel, in any runtime."""

    item_id: int
    name: str
    launch: LaunchDims

    @property
    def workers(self) -> int:
        """How many threads of the host the launch occupies."""
        return 1


@dataclass(frozen=True, slots=True)
class Window:
    """An array in a buffer; `strides` are in bytes, None for row-major."""

    address: Address
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes from the start of the first element to the end of the last; 0 without elements."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        reach = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return reach + self.dtype.itemsize

    def view(self, address: int) -> Array:
        """The window over host memory at `address`; valid only as long as that memory."""
        memory = memoryview((ctypes.c_ubyte * self.nbytes).from_address(address))
        return np.ndarray(self.shape, self.dtype, memory, 0, self.strides)


@dataclass(frozen=True, slots=True)
class TransferStep:
    """A copy between two windows of one shape and dtype."""

    item_id: int
    name: str
    source: Window
    target: Window

    @property
    def is_flat(self) -> bool:
        """Whether both are row-major, so that the copy is one run of bytes."""
        return self.source.strides is None and self.target.strides is None


@dataclass(frozen=True, slots=True)
class CallbackStep:
    """A registered operation evaluated by the host."""

    item_id: int
    name: str
    evaluate: Callable[[Sequence[Array], Sequence[CustomAttr]], Array]
    attributes: Sequence[CustomAttr]
    inputs: tuple[Window, ...]
    output: Window

    def result(self, arrays: Sequence[Array]) -> Array:
        """Evaluate the operation on `arrays`. DeviceError when the result's dtype or shape is not the output's."""
        result, output = self.evaluate(arrays, self.attributes), self.output
        if result.dtype != output.dtype or result.shape != output.shape:
            raise DeviceError(
                f"the operation {self.name} gave {result.dtype} {result.shape}, not {output.dtype} {output.shape}"
            )
        return result

"""Another library's arrays on the emulated device, offered by DLPack and by `__cuda_array_interface__`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tensorkiln.runtime.cuda import capsules
from tensorkiln.runtime.cuda import dlpack_types as types
from tests.simt.driver import EmulatedDriver

Array = np.ndarray[Any, Any]


class Foreign:
    """An array of somebody else, in a buffer of the same device, which is freed with it.

    `shape` and `strides` (in elements) say how the bytes are seen, `offset` how many bytes are left out before them.
    With `after`, the contents are put on that stream instead of being there.
    """

    def __init__(
        self,
        driver: EmulatedDriver,
        content: Array,
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        after: int | None = None,
    ) -> None:
        self.driver, self.content = driver, np.ascontiguousarray(content)
        self.shape, self.strides, self.offset = shape or content.shape, strides, offset
        self.stream = after
        self.dtype = content.dtype
        self.asked: list[int | None] = []
        with driver.scope():
            self.address = driver.allocate(max(content.nbytes + offset, 1))
            if after is None:
                driver.memory.write(self.address + offset, self.content)
            else:
                source = self.content.ctypes.data
                driver.copy_to_device(self.address + offset, source, content.nbytes, after)

    def read(self) -> Array:
        """The bytes as they are now."""
        return self.driver.memory.read(self.address + self.offset, self.content.nbytes).view(self.dtype)

    def __del__(self) -> None:
        with self.driver.scope():
            if self.stream is not None:
                self.driver.synchronize(self.stream)
            self.driver.free(self.address)


class WithInterface(Foreign):
    """Offers the array as Numba does."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = self.strides and tuple(stride * self.dtype.itemsize for stride in self.strides)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address + self.offset, False),
            "strides": strides,
            "stream": self.stream,
            "version": 3,
        }


class WithDlpack(Foreign):
    """Offers the array as PyTorch does; `old` is a producer that knows no versions."""

    old = False
    device: tuple[int, int] | None = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or (types.CUDA, self.driver.ordinal)

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> Any:
        if self.old and max_version is not None:
            raise TypeError("unexpected keyword argument max_version")
        self.asked.append(stream)
        if self.stream is not None and stream not in (None, -1):
            with self.driver.scope():
                event = self.driver.create_event(timed=False)
                self.driver.record_event(event, self.stream)
                self.driver.wait_event(event, stream or 0)
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        strides = None if self.strides is None else (ctypes.c_int64 * len(self.shape))(*self.strides)
        pointer = ctypes.POINTER(ctypes.c_int64)
        tensor = types.Tensor(
            data=self.address,
            device=types.Device(*self.__dlpack_device__()),
            ndim=len(self.shape),
            dtype=self.element(),
            shape=ctypes.cast(shape, pointer),
            strides=pointer() if strides is None else ctypes.cast(strides, pointer),
            byte_offset=self.offset,
        )
        keep = (self, shape, strides)
        if max_version is None:
            return capsules.export(types.ManagedTensor(tensor=tensor), types.NAME, keep)
        versioned = types.VersionedTensor(version=types.Version(*types.VERSION), tensor=tensor)
        return capsules.export(versioned, types.VERSIONED_NAME, keep)

    def element(self) -> types.ElementType:
        """The element type that the tensor says it has."""
        return types.element_type(self.dtype)


class OldDlpack(WithDlpack):
    """A producer that knows no versions."""

    old = True

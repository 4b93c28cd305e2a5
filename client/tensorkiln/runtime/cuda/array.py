"""Results of CUDA programs, which stay on the device until they are copied."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from ..memory import Array
from ..pool import Pool
from . import dlpack_types as types
from .capsules import export
from .context import Context
from .interface import interface_of
from .memory import DeviceBlock
from .streams import Event, Stream

_LEGACY, _PER_THREAD, _NO_SYNC = 1, 2, -1
"""DLPack's numbers for the default streams, and for no synchronization."""


class DeviceArray:
    """A row-major array in GPU memory: a program's result, which no program modifies.

    `numpy()` and `np.asarray` copy it to the host; other libraries access it without a copy, by DLPack and
    `__cuda_array_interface__`. The kernels that compute it may still be running; every access waits for them. Its
    memory is reused when the array is garbage-collected.
    """

    def __init__(
        self,
        context: Context,
        memory: tuple[DeviceBlock, Pool[DeviceBlock]],
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        ready: Event,
    ) -> None:
        self.context: Final = context
        self.block, self._pool = memory
        self.ready: Final = ready
        self.dtype: Final = dtype
        self.shape: Final = shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return self.context.driver.ordinal

    @property
    def address(self) -> int:
        """The address of the first element on the device."""
        return self.block.address

    def wait(self) -> None:
        """Wait until the array is computed. DeviceError when the program that computes it failed."""
        with self.context.driver.scope():
            self.ready.wait()

    def numpy(self) -> Array:
        """Copy to the host. DeviceError when the program that computes the array failed."""
        array = np.ndarray(self.shape, self.dtype)
        with self.context.driver.scope():
            self.ready.wait()
            self.context.fetch(array, self.address)
            self.context.finish_copies()
        return array

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array on a GPU has to be copied to become NumPy's")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def __reduce__(self) -> str:
        raise TypeError("an array on a GPU is memory of this process: copy or send its numpy()")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {self.shape} on CUDA device {self.device}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        described = interface_of(self.address, self.dtype, self.shape, self.ready.stream.protocol_handle)
        self.block.is_exported = True
        return described

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.context.driver.dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule, by the array API standard; work on the consumer's `stream` waits for the array.

        BufferError for a device other than this one and the host, and for a dtype that DLPack lacks.
        """
        if dl_device is not None and tuple(dl_device) != tuple(self.__dlpack_device__()):
            if tuple(dl_device) != (types.CPU, 0) or copy is False:
                raise BufferError(f"an array on CUDA device {self.device} cannot be had on the device {dl_device}")
            return self.numpy().__dlpack__(max_version=max_version)
        if copy:
            return self._duplicate().__dlpack__(stream=stream, max_version=max_version)
        with self.context.driver.scope():
            self._make_ready(stream)
        capsule = _capsule(self, max_version)
        self.block.is_exported = True
        return capsule

    def _make_ready(self, stream: int | None) -> None:
        if stream == _NO_SYNC:
            return
        if stream == 0:
            raise BufferError("DLPack forbids the stream 0 of CUDA as ambiguous; 1 is the default stream")
        self.ready.hold(Stream(_LEGACY if stream is None else stream))

    def _duplicate(self) -> DeviceArray:
        context, pool = self.context, self.context.results
        with context.driver.scope():
            block = pool.take(self.nbytes)
            block.prepare(context.copies)
            self.ready.hold(context.copies)
            if self.nbytes:
                context.driver.copy(block.address, self.address, self.nbytes, context.copies.handle)
            ready = context.record(context.copies)
            block.used(ready)
            self.block.used(ready)
        return DeviceArray(context, (block, pool), self.dtype, self.shape, ready)

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self._pool.give(self.block)


def _capsule(array: DeviceArray, max_version: tuple[int, int] | None) -> Any:
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)()
    reach = 1
    for axis in reversed(range(array.ndim)):
        strides[axis] = reach
        reach *= array.shape[axis]
    pointer = ctypes.POINTER(ctypes.c_int64)
    tensor = types.Tensor(
        data=array.address,
        device=types.Device(*array.__dlpack_device__()),
        ndim=array.ndim,
        dtype=types.element_type(array.dtype),
        shape=ctypes.cast(shape, pointer),
        strides=ctypes.cast(strides, pointer),
    )
    keep = (array, shape, strides)
    if max_version is None or max_version[0] < types.VERSION[0]:
        return export(types.ManagedTensor(tensor=tensor), types.NAME, keep)
    versioned = types.VersionedTensor(version=types.Version(*types.VERSION), tensor=tensor)
    return export(versioned, types.VERSIONED_NAME, keep)

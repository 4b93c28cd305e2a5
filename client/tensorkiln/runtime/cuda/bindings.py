"""The driver API of CUDA through `cuda.bindings`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from cuda.bindings import driver as _api  # type: ignore[reportAttributeAccessIssue]

from ...errors import DeviceError
from .driver import Arguments, DeviceProperties, Function, OutOfDeviceMemoryError

api = cast(Any, _api)
_CUDA_DEVICE: Final = 2
"""`kDLCUDA` of DLPack."""
_LOG_BYTES: Final = 8192
_ELF: Final = b"\x7fELF"


class BindingsDriver:
    """A GPU in its primary context, which other libraries of this process share."""

    def __init__(self, ordinal: int) -> None:
        """DeviceError when NVIDIA's driver is missing or has no such GPU."""
        try:
            _done("cuInit", api.cuInit(0))
        except RuntimeError as error:
            # cuda.bindings raises RuntimeError when it cannot load libcuda.
            raise DeviceError(
                "running a CUDA program needs an NVIDIA GPU and its driver, and this machine has no driver "
                f"(libcuda): {error}"
            ) from error
        (count,) = _done("cuDeviceGetCount", api.cuDeviceGetCount())
        if not 0 <= ordinal < count:
            raise DeviceError(f"this machine has {count} CUDA devices and none has the number {ordinal}")
        (self._device,) = _done("cuDeviceGet", api.cuDeviceGet(ordinal))
        (self._context,) = _done("cuDevicePrimaryCtxRetain", api.cuDevicePrimaryCtxRetain(self._device))
        self._process = os.getpid()
        self.ordinal: Final = ordinal
        self.dlpack_device: Final = (_CUDA_DEVICE, ordinal)
        self.properties: Final = self._properties()

    @contextmanager
    def scope(self) -> Generator[None]:
        if os.getpid() != self._process:
            raise DeviceError("CUDA cannot be used in a forked process that its parent used it in; start one by spawn")
        _done("cuCtxPushCurrent", api.cuCtxPushCurrent(self._context))
        try:
            yield
        finally:
            _done("cuCtxPopCurrent", api.cuCtxPopCurrent())

    def allocate(self, size: int) -> int:
        (address,) = _done(f"the allocation of {size} bytes", api.cuMemAlloc(size))
        return int(address)

    def free(self, address: int) -> None:
        _done("cuMemFree", api.cuMemFree(address))

    def owner_of(self, address: int) -> int | None:
        attribute = api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, ordinal = api.cuPointerGetAttribute(attribute, address)
        return None if status != api.CUresult.CUDA_SUCCESS else int(ordinal)

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        _done("cuMemcpyHtoDAsync", api.cuMemcpyHtoDAsync(target, source, size, stream))

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        _done("cuMemcpyDtoHAsync", api.cuMemcpyDtoHAsync(target, source, size, stream))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        _done("cuMemcpyDtoDAsync", api.cuMemcpyDtoDAsync(target, source, size, stream))

    def load_module(self, code: bytes) -> int:
        # The driver reads PTX up to a terminating zero byte, and writes its errors to the log.
        image = code if code.startswith(_ELF) else code + b"\0"
        log = bytearray(_LOG_BYTES)
        options = api.CUjit_option
        names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        result = api.cuModuleLoadDataEx(image, len(names), names, [log, _LOG_BYTES])
        said = bytes(log).split(b"\0")[0].decode("utf-8", "replace").strip()
        (module,) = _done(f"loading the program's code{f' ({said})' if said else ''}", result)
        return int(module)

    def unload_module(self, module: int) -> None:
        _done("cuModuleUnload", api.cuModuleUnload(module))

    def function(self, module: int, name: str) -> Function:
        status, found = api.cuModuleGetFunction(module, name.encode())
        if status == api.CUresult.CUDA_ERROR_NOT_FOUND:
            raise DeviceError(f"the program's code has no kernel {name}; compile the program again")
        _done("cuModuleGetFunction", (status,))
        attributes = api.CUfunction_attribute
        return Function(
            handle=int(found),
            name=name,
            max_threads=_attribute(found, attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            static_shared_bytes=_attribute(found, attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        )

    def allow_shared(self, function: Function, size: int) -> None:
        attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _done(f"allowing {function.name} shared memory", api.cuFuncSetAttribute(function.handle, attribute, size))

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Arguments,
        stream: int,
    ) -> None:
        result = api.cuLaunchKernel(function.handle, *grid, *block, shared_bytes, stream, arguments.address, 0)
        if result[0] != _SUCCESS:
            _done(f"the launch of {function.name}", result)

    def create_stream(self) -> int:
        flags = api.CUstream_flags.CU_STREAM_NON_BLOCKING
        (stream,) = _done("cuStreamCreate", api.cuStreamCreate(flags.value))
        return int(stream)

    def destroy_stream(self, stream: int) -> None:
        _done("cuStreamDestroy", api.cuStreamDestroy(stream))

    def synchronize(self, stream: int) -> None:
        _done("the program", api.cuStreamSynchronize(stream))

    def synchronize_all(self) -> None:
        _done("the device", api.cuCtxSynchronize())

    def create_event(self, *, timed: bool) -> int:
        flags = api.CUevent_flags
        chosen = flags.CU_EVENT_DEFAULT if timed else flags.CU_EVENT_DISABLE_TIMING
        (event,) = _done("cuEventCreate", api.cuEventCreate(chosen.value))
        return int(event)

    def record_event(self, event: int, stream: int) -> None:
        _done("cuEventRecord", api.cuEventRecord(event, stream))

    def wait_event(self, event: int, stream: int) -> None:
        _done("cuStreamWaitEvent", api.cuStreamWaitEvent(stream, event, 0))

    def synchronize_event(self, event: int) -> None:
        _done("the program", api.cuEventSynchronize(event))

    def elapsed_ns(self, first: int, last: int) -> int:
        (milliseconds,) = _done("cuEventElapsedTime", api.cuEventElapsedTime(first, last))
        return round(float(milliseconds) * 1e6)

    def _properties(self) -> DeviceProperties:
        names = api.CUdevice_attribute

        def get(name: str) -> int:
            (value,) = _done(
                "cuDeviceGetAttribute",
                api.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), self._device),
            )
            return int(value)

        (name,) = _done("cuDeviceGetName", api.cuDeviceGetName(256, self._device))
        return DeviceProperties(
            name=cast(bytes, name).split(b"\0")[0].decode("utf-8", "replace"),
            capability=(get("COMPUTE_CAPABILITY_MAJOR"), get("COMPUTE_CAPABILITY_MINOR")),
            max_grid=_three(get, "MAX_GRID_DIM"),
            max_block=_three(get, "MAX_BLOCK_DIM"),
            max_threads=get("MAX_THREADS_PER_BLOCK"),
            max_shared_bytes=get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            multiprocessors=get("MULTIPROCESSOR_COUNT"),
            clock_khz=get("CLOCK_RATE"),
            memory_khz=get("MEMORY_CLOCK_RATE"),
            memory_bits=get("GLOBAL_MEMORY_BUS_WIDTH"),
        )


_SUCCESS: Final = api.CUresult.CUDA_SUCCESS


def _three(get: Callable[[str], int], name: str) -> tuple[int, int, int]:
    return get(f"{name}_X"), get(f"{name}_Y"), get(f"{name}_Z")


def _attribute(function: Any, name: Any) -> int:
    (value,) = _done("cuFuncGetAttribute", api.cuFuncGetAttribute(name, function))
    return int(value)


def _done(what: str, result: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that a driver call returned. DeviceError with CUDA's name of the error when it failed."""
    status, *values = result
    if status == _SUCCESS:
        return tuple(values)
    _, name = api.cuGetErrorName(status)
    _, text = api.cuGetErrorString(status)
    told = f"{_text(name)}: {_text(text)}"
    kind = OutOfDeviceMemoryError if status == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY else DeviceError
    raise kind(f"CUDA failed at {what}: {told}", details={"cuda_error": _text(name)})


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)

"""A CUDA driver whose device is the emulator, and whose streams work as late as they may.

What is put on a stream waits until somebody synchronizes with it, and then runs only as far as it must. So a program
that forgets to wait reads what is not there yet, or writes over what is still needed, every time.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from tensorkiln.errors import DeviceError
from tensorkiln.runtime.cuda.driver import Arguments, DeviceProperties, Function, OutOfDeviceMemoryError
from tests.simt.errors import KernelFault, LaunchRefused, SimtError
from tests.simt.memory import DeviceMemory
from tests.simt.module import SimtModule
from tests.simt.watch import Watch

HOPPER: Final = DeviceProperties(
    name="emulated GPU",
    capability=(9, 0),
    max_grid=(2**31 - 1, 65_535, 65_535),
    max_block=(1024, 1024, 64),
    max_threads=1024,
    max_shared_bytes=232_448,
    multiprocessors=132,
    clock_khz=1_980_000,
    memory_khz=2_619_000,
    memory_bits=5120,
)
"""The limits of compute capability 9.0 (CUDA C++ Programming Guide, "Technical Specifications"); an H100's clocks."""

DEFAULT_STREAMS: Final = (1, 2)
_SHARED_WITHOUT_PERMISSION: Final = 48 << 10


@dataclass(frozen=True)
class Work:
    """Something on a stream. After a fault only what `orders` other work happens."""

    run: Callable[[], None]
    orders: bool


Queue = deque[Work]


@dataclass
class Mark:
    """A recording of an event; `stream` has come to it when it is `done`, at `time_ns`."""

    stream: int
    done: bool = False
    time_ns: int = 0


@dataclass
class Log:
    """What the driver was asked for."""

    launches: list[tuple[str, tuple[int, int, int], tuple[int, int, int], int]] = field(default_factory=list[Any])
    allowed: dict[str, int] = field(default_factory=dict[str, int])
    loaded: list[bytes] = field(default_factory=list[bytes])
    unloaded: int = 0
    allocated: int = 0
    freed: int = 0


class EmulatedDriver:
    """`ir` gives the LLVM IR of each code that will be loaded, since nothing here executes PTX.

    `eager` runs work at once; `capacity` is the device's memory in bytes; with `watched`, every access of a kernel is
    checked. A kernel that faults makes every later call fail, as on a GPU.
    """

    def __init__(
        self,
        ir: Mapping[bytes, str],
        *,
        ordinal: int = 0,
        dlpack_device: tuple[int, int] | None = None,
        properties: DeviceProperties = HOPPER,
        capacity: int = 1 << 30,
        eager: bool = False,
        watched: bool = False,
    ) -> None:
        self.ir = dict(ir)
        self.ordinal = ordinal
        self.dlpack_device = dlpack_device or (2, ordinal)
        self.properties = properties
        self.memory: Final = DeviceMemory()
        self.log: Final = Log()
        self._capacity, self._eager, self._watched = capacity, eager, watched
        self._sizes: dict[int, int] = {}
        self._handles = itertools.count(0x1000)
        self._modules: dict[int, SimtModule] = {}
        self._functions: dict[int, tuple[SimtModule, str]] = {}
        self._streams: dict[int, Queue] = {handle: deque() for handle in DEFAULT_STREAMS}
        self._events: dict[int, Mark] = {}
        self._scopes = threading.local()
        self._turn = _Turn()
        self._clock = itertools.count(1)
        self._fault: str | None = None

    @contextmanager
    def scope(self) -> Generator[None]:
        self._scopes.depth = getattr(self._scopes, "depth", 0) + 1
        try:
            yield
        finally:
            self._scopes.depth -= 1

    def allocate(self, size: int) -> int:
        self._require_scope()
        with self._turn:
            if size < 1:
                raise DeviceError("CUDA_ERROR_INVALID_VALUE: an allocation has at least one byte")
            if sum(self._sizes.values()) + size > self._capacity:
                raise OutOfDeviceMemoryError(f"{size} bytes do not fit")
            address = self.memory.allocate(size)
            self._sizes[address] = size
            self.log.allocated += 1
            return address

    def free(self, address: int) -> None:
        self._require_scope()
        with self._turn:
            self.memory.free(address)
            del self._sizes[address]
            self.log.freed += 1

    def owner_of(self, address: int) -> int | None:
        self._require_scope()
        with self._turn:
            spans = ((start, start + size) for start, size in self._sizes.items())
            return self.ordinal if any(start <= address < stop for start, stop in spans) else None

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        self._put(stream, lambda: self.memory.write(target, _host(source, size)))

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        self._put(stream, lambda: np.copyto(_host(target, size), self.memory.read(source, size)))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._put(stream, lambda: self.memory.write(target, self.memory.read(source, size)))

    def load_module(self, code: bytes) -> int:
        self._require_scope()
        if code not in self.ir:
            raise DeviceError(f"CUDA_ERROR_INVALID_PTX: there is no LLVM IR of this code ({code[:40]!r})")
        handle = next(self._handles)
        self._modules[handle] = SimtModule(self.ir[code])
        self.log.loaded.append(code)
        return handle

    def unload_module(self, module: int) -> None:
        self._require_scope()
        del self._modules[module]
        self.log.unloaded += 1

    def function(self, module: int, name: str) -> Function:
        self._require_scope()
        kernels = self._modules[module]
        if name not in kernels.entries:
            raise DeviceError(f"the program's code has no kernel {name}")
        entry, handle = kernels.entries[name], next(self._handles)
        self._functions[handle] = (kernels, name)
        most = entry.max_threads or self.properties.max_threads
        return Function(handle, name, most, entry.static_shared_bytes)

    def allow_shared(self, function: Function, size: int) -> None:
        self._require_scope()
        self.log.allowed[function.name] = size

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Arguments,
        stream: int,
    ) -> None:
        kernels, name = self._functions[function.handle]
        parameters = kernels.entries[name].parameters
        if len(parameters) != len(arguments.values):
            raise DeviceError(f"{name} takes {len(parameters)} arguments, got {len(arguments.values)}")
        pairs = zip(parameters, arguments.values, strict=True)
        values = [value % 2**64 if parameter.kind == "ptr" else value for parameter, value in pairs]
        if function.static_shared_bytes + shared_bytes > _SHARED_WITHOUT_PERMISSION:
            allowed = self.log.allowed.get(name, 0)
            if shared_bytes > allowed:
                raise DeviceError(f"{name} has {shared_bytes} bytes of dynamic shared memory, {allowed} are allowed")
        self.log.launches.append((name, grid, block, shared_bytes))

        def run() -> None:
            if kernels not in self._modules.values():
                raise KernelFault(f"the module of {name} was unloaded before the kernel ran")
            watch = Watch(self.memory) if self._watched else None
            seed = next(self._clock)
            kernels.launch(name, grid, block, values, dynamic_shared_bytes=shared_bytes, seed=seed, watch=watch)

        self._put(stream, run)

    def create_stream(self) -> int:
        self._require_scope()
        handle = next(self._handles)
        self._streams[handle] = Queue()
        return handle

    def destroy_stream(self, stream: int) -> None:
        with self._turn:
            self._run(stream)
            del self._streams[stream]

    def synchronize(self, stream: int) -> None:
        self._require_scope()
        with self._turn:
            self._run(stream)
        self._require_sound()

    def synchronize_all(self) -> None:
        self._require_scope()
        with self._turn:
            for stream in list(self._streams):
                self._run(stream)
        self._require_sound()

    def create_event(self, *, timed: bool) -> int:
        self._require_scope()
        handle = next(self._handles)
        self._events[handle] = Mark(0, done=True)
        return handle

    def record_event(self, event: int, stream: int) -> None:
        mark = self._events[event] = Mark(_one(stream))
        self._put(stream, partial(self._reach, mark), orders=True)

    def wait_event(self, event: int, stream: int) -> None:
        self._put(stream, partial(self._catch_up, self._events[event]), orders=True)

    def synchronize_event(self, event: int) -> None:
        self._require_scope()
        with self._turn:
            self._catch_up(self._events[event])
        self._require_sound()

    def elapsed_ns(self, first: int, last: int) -> int:
        marks = self._events[first], self._events[last]
        if not all(mark.done for mark in marks):
            raise DeviceError("CUDA_ERROR_NOT_READY")
        return marks[1].time_ns - marks[0].time_ns

    def pending(self, stream: int) -> int:
        """How much of what was put on the stream has not happened yet."""
        return len(self._streams[_one(stream)])

    def _put(self, stream: int, run: Callable[[], None], *, orders: bool = False) -> None:
        self._require_scope()
        self._require_sound()
        with self._turn:
            if _one(stream) not in self._streams:
                raise DeviceError(f"CUDA_ERROR_INVALID_HANDLE: there is no stream {stream}")
            self._streams[_one(stream)].append(Work(run, orders))
            if self._eager:
                self._run(stream)

    def _run(self, stream: int) -> None:
        queue = self._streams[_one(stream)]
        while queue:
            self._step(queue)

    def _catch_up(self, mark: Mark) -> None:
        queue = self._streams.get(mark.stream, Queue())
        while not mark.done and queue:
            self._step(queue)

    def _step(self, queue: Queue) -> None:
        work = queue.popleft()
        if self._fault is not None and not work.orders:
            return
        try:
            work.run()
        except SimtError as error:
            refused = isinstance(error, LaunchRefused)
            self._fault = f"{'CUDA_ERROR_INVALID_VALUE' if refused else 'CUDA_ERROR_LAUNCH_FAILED'}: {error}"

    def _reach(self, mark: Mark) -> None:
        mark.done, mark.time_ns = True, 1000 * next(self._clock)

    def _require_sound(self) -> None:
        if self._fault is not None:
            raise DeviceError(f"CUDA failed at the program: {self._fault}")

    def _require_scope(self) -> None:
        if not getattr(self._scopes, "depth", 0):
            raise DeviceError("CUDA_ERROR_INVALID_CONTEXT: the calling thread has no current context")


class _Turn:
    """A lock, under which the garbage collector rests: a finalizer that synchronizes must not cut into work."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._collects: list[bool] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._collects.append(gc.isenabled())
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._collects.pop():
            gc.enable()
        self._lock.release()


def _one(stream: int) -> int:
    """Both handles of the default stream as one."""
    return 1 if stream == 0 else stream


def _host(address: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(address)), np.uint8)

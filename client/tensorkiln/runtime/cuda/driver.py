"""The interface to a CUDA driver that the runtime uses, for one device.

Addresses, streams, events, modules and functions are integers: the driver's own handles. Every method may be called
from any thread, inside `scope` unless its docstring says otherwise, and raises DeviceError when the driver returns an
error. Work on a stream runs asynchronously and in order; the error of a kernel surfaces at a later call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from ...errors import DeviceError
from ..machine import Machine

ALIGNMENT: Final = 256
"""Bytes that every allocation is aligned to, by the CUDA C++ Programming Guide, "Device Memory Accesses"."""


class OutOfDeviceMemoryError(DeviceError):
    """The device has no room for an allocation."""

    def on_behalf_of(self, what: str, size: int) -> OutOfDeviceMemoryError:
        """The same error with the purpose of the allocation; `what` is its subject and verb, as for `no_room`."""
        return OutOfDeviceMemoryError(
            f"{what} {size} bytes, for which the GPU has no room: call with smaller sizes, or let go of arrays on it "
            f"({self.message})",
            details={**self.details, "bytes": size},
        )


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """`capability` is the compute capability; `max_shared_bytes` is the opt-in limit of shared memory per block.

    Clocks are in 1000 cycles per second, of the multiprocessors and of the memory, whose bus has `memory_bits`; 0 where
    the driver does not say.
    """

    name: str
    capability: tuple[int, int]
    max_grid: tuple[int, int, int]
    max_block: tuple[int, int, int]
    max_threads: int
    max_shared_bytes: int
    multiprocessors: int
    clock_khz: int
    memory_khz: int
    memory_bits: int

    @property
    def peak(self) -> Machine | None:
        """The peak of the memory and of float32 arithmetic; None where the driver leaves out a clock or a width.

        Memory moves its width twice per cycle of its clock. Each multiprocessor starts 64 fused multiply-adds per cycle
        at compute capabilities 7.x and 8.0, and 128 from 8.6 on; one counts as two operations (CUDA C++ Programming
        Guide, "Throughput of Native Arithmetic Instructions"). Tensor cores are left out, since no kernel uses them.
        """
        lanes = 64 if self.capability <= (8, 0) else 128
        moved = 2 * self.memory_khz * self.memory_bits / 8 / 1e6
        computed = 2 * self.multiprocessors * lanes * self.clock_khz / 1e6
        return Machine(gb_per_s=moved, gflop_per_s=computed) if moved and computed else None


@dataclass(frozen=True, slots=True)
class Function:
    """A loaded kernel; `max_threads` is the largest block that its registers allow."""

    handle: int
    name: str
    max_threads: int
    static_shared_bytes: int


class Arguments:
    """The arguments of a launch, 8 bytes each. `values` may be changed between launches.

    `address` is the address of an array of pointers to the values, the form that the driver takes.
    """

    __slots__ = ("_pointers", "address", "values")

    def __init__(self, values: Sequence[int]) -> None:
        """`values` are addresses and 64-bit integers, negative ones in two's complement."""
        count = len(values)
        self.values: Final = (ctypes.c_int64 * count)(*values)
        start = ctypes.addressof(self.values)
        self._pointers: Final = (ctypes.c_void_p * count)(*range(start, start + 8 * count, 8))
        self.address: Final = ctypes.addressof(self._pointers)


class Driver(Protocol):
    """One device of a driver."""

    @property
    def ordinal(self) -> int:
        """The number of the device. Needs no scope."""
        ...

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The device in DLPack's terms. Needs no scope."""
        ...

    @property
    def properties(self) -> DeviceProperties:
        """Name and limits of the device. Needs no scope."""
        ...

    def scope(self) -> AbstractContextManager[object]:
        """Make the device current for the calling thread until the block ends. Scopes may be nested."""
        ...

    def allocate(self, size: int) -> int:
        """Allocate `size` bytes, at least one, aligned to 256. OutOfDeviceMemoryError when there is no room."""
        ...

    def free(self, address: int) -> None:
        """Free memory that no work uses any more."""
        ...

    def owner_of(self, address: int) -> int | None:
        """The number of the device that owns this address; None for memory that no device can access."""
        ...

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes from the host, which must not change before the stream has executed the copy."""
        ...

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes to the host; they arrive when the stream executes the copy."""
        ...

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes within the device."""
        ...

    def load_module(self, code: bytes) -> int:
        """Load a cubin, or PTX, which the driver compiles."""
        ...

    def unload_module(self, module: int) -> None:
        """Unload a module whose kernels are not launched any more."""
        ...

    def function(self, module: int, name: str) -> Function:
        """The kernel of that name."""
        ...

    def allow_shared(self, function: Function, size: int) -> None:
        """Allow launches of the kernel with up to `size` bytes of dynamic shared memory."""
        ...

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Arguments,
        stream: int,
    ) -> None:
        """Launch with `shared_bytes` of dynamic shared memory; the arguments are read before this returns."""
        ...

    def create_stream(self) -> int:
        """Create a stream that does not synchronize with the default stream."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream once its work is done."""
        ...

    def synchronize(self, stream: int) -> None:
        """Wait until all work on the stream is done."""
        ...

    def synchronize_all(self) -> None:
        """Wait until all work on the device is done."""
        ...

    def create_event(self, *, timed: bool) -> int:
        """Create an event; only timed events work with `elapsed_ns`."""
        ...

    def record_event(self, event: int, stream: int) -> None:
        """Record the event on the stream: it completes when the stream reaches this point."""
        ...

    def wait_event(self, event: int, stream: int) -> None:
        """Make the stream wait for the event, as last recorded."""
        ...

    def synchronize_event(self, event: int) -> None:
        """Block the calling thread until the event has completed."""
        ...

    def elapsed_ns(self, first: int, last: int) -> int:
        """Nanoseconds between two timed events that have completed."""
        ...

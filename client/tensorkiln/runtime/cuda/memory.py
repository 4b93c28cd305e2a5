"""Device memory, and the pending work that uses it."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from ...errors import DeviceError
from ..pool import Pool
from .driver import Driver, OutOfDeviceMemoryError
from .streams import Event, Stream


class DeviceBlock:
    """`size` bytes from `address` on, aligned to 256; freed when the block is garbage-collected.

    `frames` is the prepared state of the plans that have run in this block, as addresses into it. `uses` has, by
    stream, the last event after work that used the block. `is_exported`: other libraries have its address and may use
    it on any stream.
    """

    __slots__ = ("__weakref__", "_driver", "address", "frames", "is_exported", "size", "uses")

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        self._driver: Final = driver
        self.address: Final = address
        self.size: Final = size
        self.frames: Final[dict[object, Any]] = {}
        self.uses: Final[dict[int, Event]] = {}
        self.is_exported = False
        weakref.finalize(self, _free, driver, address).atexit = False

    def prepare(self, stream: Stream) -> None:
        """Make `stream` wait for every earlier use, so that its later work may write to the block."""
        if self.is_exported:
            self._driver.synchronize_all()
            self.is_exported = False
        else:
            for event in list(self.uses.values()):
                event.hold(stream)
        self.uses.clear()

    def used(self, event: Event) -> None:
        """Note that the work before `event` uses the block."""
        self.uses[event.stream.handle] = event


class Heap:
    """The allocator of a device's memory for this process. Thread-safe; `allocate` needs the driver's scope."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pools: WeakSet[Pool[DeviceBlock]] = WeakSet()
        self._lock = threading.Lock()

    def pool(self, *, slack: bool, max_idle: int) -> Pool[DeviceBlock]:
        """A pool whose idle blocks are freed when the device runs out of memory."""
        pool = Pool(self.allocate, slack=slack, max_idle=max_idle)
        with self._lock:
            self._pools.add(pool)
        return pool

    def allocate(self, size: int) -> DeviceBlock:
        """Allocate memory, freeing all idle blocks if necessary. OutOfDeviceMemoryError when there is still no room."""
        wanted = max(size, 1)
        try:
            address = self._driver.allocate(wanted)
        except OutOfDeviceMemoryError:
            with self._lock:
                pools = list(self._pools)
            for pool in pools:
                pool.drop()
            address = self._driver.allocate(wanted)
        return DeviceBlock(self._driver, address, wanted)


def _free(driver: Driver, address: int) -> None:
    # Kernels that use the memory may still be running. A failed device loses its memory anyway.
    with suppress(DeviceError), driver.scope():
        driver.synchronize_all()
        driver.free(address)

"""Memory of a device, and who still uses it."""

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
    """`size` bytes from `address` on, aligned to 256; freed when nobody holds the block.

    `frames` is the prepared state of the plans that have run in this block, as addresses into it. The work on each
    stream that used the block last is in `uses`; a block that other libraries have seen `is_exported`, and what they
    do with it is not known.
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
        """Let `stream` wait for every earlier use, so that work on it may write to the block."""
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
    """All memory that this process has of a device. Safe for several threads; `allocate` needs the driver's scope."""

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
        """New memory. OutOfDeviceMemoryError when there is no room although every idle block is freed."""
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
    # Kernels that use the memory may still be running. A device that has failed frees its memory by itself.
    with suppress(DeviceError), driver.scope():
        driver.synchronize_all()
        driver.free(address)

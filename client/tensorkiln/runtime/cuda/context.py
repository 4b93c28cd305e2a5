"""State of a device that all programs of this process share: loaded modules, idle memory, events."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from ..memory import Array, address_of
from .driver import Driver
from .memory import DeviceBlock, Heap
from .modules import Module
from .streams import Event, Stream

RESULTS_KEPT: Final = 64
"""The most idle blocks kept, for results and for inputs from the host."""

_contexts: WeakValueDictionary[Driver, Context] = WeakValueDictionary()
_lock = threading.Lock()


class Context:
    """The shared state of one device. All methods except `of` must be called in the driver's scope."""

    def __init__(self, driver: Driver) -> None:
        self.driver: Final = driver
        self._idle_events: Final[deque[int]] = deque()
        self.idle_timed_events: Final[deque[int]] = deque()
        self._modules: WeakValueDictionary[str, Module] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._copies: Stream | None = None
        self.heap: Final = Heap(driver)
        self.results: Final = self.heap.pool(slack=True, max_idle=RESULTS_KEPT)

    @staticmethod
    def of(driver: Driver) -> Context:
        """The context of a driver, one for all programs."""
        with _lock:
            found = _contexts.get(driver)
            if found is None:
                found = _contexts[driver] = Context(driver)
            return found

    def module(self, digest: str, code: bytes) -> Module:
        """The code with this SHA-256, loaded once for all programs that use it."""
        with self._lock:
            found = self._modules.get(digest)
            if found is None:
                found = self._modules[digest] = Module(self.driver, code)
            return found

    def record(self, stream: Stream) -> Event:
        """Record an event at the current point in `stream`."""
        try:
            handle = self._idle_events.pop()
        except IndexError:
            handle = self.driver.create_event(timed=False)
        event = Event(self.driver, handle, stream, self._idle_events)
        self.driver.record_event(handle, stream.handle)
        return event

    def timed_event(self) -> int:
        """A timed event; the caller returns it to `idle_timed_events`."""
        try:
            return self.idle_timed_events.pop()
        except IndexError:
            return self.driver.create_event(timed=True)

    def upload(self, pairs: Sequence[tuple[DeviceBlock, Array]]) -> None:
        """Copy arrays to the starts of blocks, which must be prepared for the stream of copies, and wait."""
        if pairs:
            held = [self.send(block.address, array) for block, array in pairs]
            self.finish_copies()
            del held

    def send(self, address: int, given: Array) -> Array:
        """Start copying an array to the device. The caller must keep the returned array until `finish_copies`."""
        array = given if given.flags.c_contiguous and given.flags.aligned else np.array(given, order="C")
        if array.nbytes:
            self.driver.copy_to_device(address, address_of(array), array.nbytes, self.copies.handle)
        return array

    def fetch(self, array: Array, address: int) -> None:
        """Start copying from the device into a contiguous array, which is complete after `finish_copies`."""
        if array.nbytes:
            self.driver.copy_to_host(address_of(array), address, array.nbytes, self.copies.handle)

    def finish_copies(self) -> None:
        """Wait for the copies between host and device."""
        self.driver.synchronize(self.copies.handle)

    @property
    def copies(self) -> Stream:
        """The stream for copies between host and device, separate so that they do not wait for unrelated kernels."""
        with self._lock:
            if self._copies is None:
                self._copies = Stream.create(self.driver)
            return self._copies

"""A device with what the programs of this process share on it: loaded modules, idle memory, events."""

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
"""Idle blocks of results and of inputs from the host."""

_contexts: WeakValueDictionary[Driver, Context] = WeakValueDictionary()
_lock = threading.Lock()


class Context:
    """The shared state of one device. Everything but `of` is called in the driver's scope."""

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
        """The context of a driver: one, however many programs ask."""
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
        """This point in `stream`."""
        try:
            handle = self._idle_events.pop()
        except IndexError:
            handle = self.driver.create_event(timed=False)
        event = Event(self.driver, handle, stream, self._idle_events)
        self.driver.record_event(handle, stream.handle)
        return event

    def timed_event(self) -> int:
        """An event that can tell the time; it goes back to `idle_timed_events`."""
        try:
            return self.idle_timed_events.pop()
        except IndexError:
            return self.driver.create_event(timed=True)

    def upload(self, pairs: Sequence[tuple[DeviceBlock, Array]]) -> None:
        """Copy arrays to the starts of blocks, to which the stream of copies may write; done when it returns."""
        if pairs:
            held = [self.send(block.address, array) for block, array in pairs]
            self.finish_copies()
            del held

    def send(self, address: int, given: Array) -> Array:
        """Start to copy an array to the device. The array returned must live until the copies are synchronized."""
        array = given if given.flags.c_contiguous and given.flags.aligned else np.array(given, order="C")
        if array.nbytes:
            self.driver.copy_to_device(address, address_of(array), array.nbytes, self.copies.handle)
        return array

    def fetch(self, array: Array, address: int) -> None:
        """Start to copy from the device into a contiguous array, complete once the copies are synchronized."""
        if array.nbytes:
            self.driver.copy_to_host(address_of(array), address, array.nbytes, self.copies.handle)

    def finish_copies(self) -> None:
        """Wait for the copies between host and device."""
        self.driver.synchronize(self.copies.handle)

    @property
    def copies(self) -> Stream:
        """The stream of copies between host and device, so that they wait for no kernel that they do not need."""
        with self._lock:
            if self._copies is None:
                self._copies = Stream.create(self.driver)
            return self._copies

"""Streams, and events that other work waits for."""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from typing import Final, cast

from ...errors import CallInputError, DeviceError
from .driver import Driver

LEGACY_STREAM: Final = 1
"""The handle of the default stream in DLPack and `__cuda_array_interface__`; the driver also accepts 0."""


class Stream:
    """A stream by its handle; `owner` is an object that keeps another library's stream alive."""

    def __init__(self, handle: int, owner: object = None) -> None:
        self.handle: Final = handle
        self._owner = owner

    @staticmethod
    def create(driver: Driver) -> Stream:
        """A new stream, which is destroyed when it is garbage-collected."""
        stream = Stream(driver.create_stream())
        weakref.finalize(stream, _destroy, driver, stream.handle).atexit = False
        return stream

    @staticmethod
    def of(given: object) -> Stream:
        """A stream of the caller: an object with `__cuda_stream__`, or a handle. CallInputError when it is neither."""
        if isinstance(given, int) and not isinstance(given, bool):
            return Stream(given)
        protocol = getattr(given, "__cuda_stream__", None)
        if protocol is None:
            raise CallInputError(
                f"a {type(given).__name__} is not a CUDA stream: pass an object with __cuda_stream__, or a handle"
            )
        # A method by the protocol of cuda.core; early versions of it had an attribute.
        version, handle = cast("tuple[int, int]", protocol() if callable(protocol) else protocol)
        if version != 0:
            raise CallInputError(f"version {version} of the CUDA stream protocol is not known; version 0 is")
        return Stream(int(handle), given)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    @property
    def protocol_handle(self) -> int:
        """The handle as the array protocols write it, where 0 is ambiguous."""
        return self.handle or LEGACY_STREAM


class Event:
    """A recorded point in a stream. Its handle returns to `idle` for reuse when the event is garbage-collected."""

    __slots__ = ("_driver", "_idle", "handle", "stream")

    def __init__(self, driver: Driver, handle: int, stream: Stream, idle: deque[int]) -> None:
        self._driver = driver
        self._idle = idle
        self.handle: Final = handle
        self.stream: Final = stream

    def wait(self) -> None:
        """Wait until the stream has reached this point. DeviceError when the work before it failed."""
        self._driver.synchronize_event(self.handle)

    def hold(self, stream: Stream) -> None:
        """Make `stream` wait for this point."""
        if stream.handle != self.stream.handle:
            self._driver.wait_event(self.handle, stream.handle)

    def __del__(self) -> None:
        self._idle.append(self.handle)


def _destroy(driver: Driver, handle: int) -> None:
    with suppress(DeviceError), driver.scope():
        driver.destroy_stream(handle)

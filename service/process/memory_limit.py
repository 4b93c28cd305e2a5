"""A limit for the resident memory of this process."""

from __future__ import annotations

import asyncio
import ctypes
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tensorkiln.errors import UnavailableError

MIB: Final = 1 << 20
ITSELF_MIB: Final = 96
"""Memory of a process of the service before its first request."""
SMALL_BYTES: Final = MIB
"""Requests up to this size always pass, so that a few very large ones do not block the many small ones."""
_LOOK_EVERY_S: Final = 0.1
_M_MMAP_THRESHOLD: Final = -3  # malloc.h of glibc


class MemoryLimit:
    """Refuses allocations that would make this process larger than `most_mib`."""

    def __init__(self, most_mib: int) -> None:
        self._most = most_mib * MIB
        self._reserved = 0

    def require(self, count: int) -> None:
        """Raise UnavailableError unless there is room for `count` more bytes, or `count` is at most SMALL_BYTES."""
        if count <= SMALL_BYTES:
            return
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()  # see proc(5)
        if resident + self._reserved + count > self._most:
            raise UnavailableError(
                f"The service has {resident // MIB} MiB in memory, and may have {self._most // MIB} MiB; send the "
                "request again in a moment.",
                details={"resident_mib": resident // MIB, "maximum_mib": self._most // MIB},
            )

    @asynccontextmanager
    async def room(self, count: int, seconds: float) -> AsyncGenerator[None]:
        """Reserve room for `count` bytes within the context.

        Waits for it up to `seconds`, then goes on anyway: accepted work has to be done.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    with suppress(UnavailableError):
                        self.require(count)
                        break
                    await asyncio.sleep(_LOOK_EVERY_S)
        self._reserved += count
        try:
            yield
        finally:
            self._reserved -= count


def give_back_large_blocks() -> None:
    """Make the C library map each block of 1 MiB or more separately, so that freeing it returns the memory.

    By default glibc raises this threshold up to 32 MiB as such blocks are freed, and the process does not shrink.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MIB)

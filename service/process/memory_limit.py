"""What this process has of the machine's memory, against what it may have."""

from __future__ import annotations

import asyncio
import ctypes
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

from tensorkiln.errors import UnavailableError

MIB: Final = 1 << 20
ITSELF_MIB: Final = 96
"""What a process of the service has before its first request."""
SMALL_BYTES: Final = MIB
"""What is not asked about: the small requests of most callers are served on beside a few that are very large."""
_LOOK_EVERY_S: Final = 0.1
_M_MMAP_THRESHOLD: Final = -3  # malloc.h of glibc


class MemoryLimit:
    """Refuses what would make this process larger than `most_mib`, before it is there.

    Nothing is reserved: what is asked for in the same moment may come to more.
    """

    def __init__(self, most_mib: int) -> None:
        self._most = most_mib * MIB

    def require(self, count: int) -> None:
        """UnavailableError unless there is room for `count` bytes more, or they are few."""
        if count <= SMALL_BYTES:
            return
        resident = _resident_bytes()
        if resident + count > self._most:
            raise UnavailableError(
                f"The service has {resident // MIB} MiB in memory, and may have {self._most // MIB} MiB; send the "
                "request again in a moment.",
                details={"resident_mib": resident // MIB, "maximum_mib": self._most // MIB},
            )

    async def room(self, count: int, seconds: float) -> None:
        """Wait for room for `count` bytes, and no longer than that: what has been promised is done in the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    with suppress(UnavailableError):
                        return self.require(count)
                    await asyncio.sleep(_LOOK_EVERY_S)


def give_back_large_blocks() -> None:
    """Have the C library map each large block by itself from now on, and give it back when it is free.

    glibc raises the size of such blocks up to 32 MiB as they are freed: then the body of a request lies among small
    blocks, and the process keeps its size. Other libraries have no such option.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MIB)


def _resident_bytes() -> int:
    """What this process has in memory (proc(5))."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

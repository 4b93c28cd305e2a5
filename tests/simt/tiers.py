"""Two forms of a kernel's code: one that is there soon, and one that runs fast, for kernels that run long enough."""

from __future__ import annotations

from typing import Final

from .entries import Entry
from .jit import Code
from .rewrite import HostText

_MANY_THREADS: Final = 1 << 16
_LONG_SECONDS: Final = 0.05
"""Beyond either, optimised code repays its compilation, which takes about that long."""


class Tiers:
    """The code of one kernel of `host`."""

    def __init__(self, host: HostText, entry: Entry) -> None:
        self.host = host
        self._entry = entry
        self._codes: dict[int, Code] = {}
        self._seconds = 0.0

    def code(self, threads: int) -> Code:
        """What to run a launch of so many threads with."""
        level = int(threads >= _MANY_THREADS or self._seconds > _LONG_SECONDS or 1 in self._codes)
        if level not in self._codes:
            self._codes[level] = Code(self.host, self._entry, level)
        return self._codes[level]

    def ran(self, seconds: float) -> None:
        """Take note of how long a launch took."""
        self._seconds += seconds

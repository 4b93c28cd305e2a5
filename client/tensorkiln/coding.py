"""Bodies of requests in a content coding (RFC 9110 section 8.4), where that saves more than it costs."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock
from types import MappingProxyType
from typing import Final, cast

CODED_FROM_BYTES: Final = 64 << 10
"""What is shorter goes out in a moment anyway."""
MAX_RATIO: Final = 100
"""A service refuses what swells by more than 200: half of that leaves room for others' bounds."""
# The fastest of each: of the JSON of graphs the higher ones make little less, in several times the time.
_LEVEL: Final = 1
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Payload:
    """A body, and the same in a content coding, which is made once however often it is sent."""

    def __init__(self, plain: bytes | None) -> None:
        self.plain = plain
        self._lock = Lock()
        self._coded: tuple[bytes | None, Mapping[str, str]] | None = None

    @property
    def is_large(self) -> bool:
        """Whether a coding may pay."""
        return self.plain is not None and len(self.plain) >= CODED_FROM_BYTES

    def coded(self) -> tuple[bytes | None, Mapping[str, str]]:
        """What to send and the headers that say how it is coded: none where no coding makes it shorter by much."""
        with self._lock:
            if self._coded is None:
                self._coded = _coded(self.plain or b"")
            return self._coded


def _coded(plain: bytes) -> tuple[bytes, Mapping[str, str]]:
    coding, compress = _CODING
    packed = compress(plain)
    if len(packed) > len(plain) * 0.9 or len(packed) * MAX_RATIO < len(plain):
        return plain, _NONE
    return packed, {"Content-Encoding": coding}


def _gzip(plain: bytes) -> bytes:
    return gzip.compress(plain, _LEVEL, mtime=0)


def _chosen() -> tuple[str, Callable[[bytes], bytes]]:
    """zstd where Python has it (3.14) or its backport is installed, and otherwise gzip."""
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        return "gzip", _gzip
    compress = cast("Callable[[bytes, int], bytes]", zstd.compress)
    return "zstd", lambda plain: compress(plain, _LEVEL)


_CODING: Final = _chosen()

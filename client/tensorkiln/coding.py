"""Compression of request bodies by a content coding (RFC 9110 section 8.4), where it pays."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, cast

CODED_FROM_BYTES: Final = 64 << 10
"""The least body size in bytes that is compressed; shorter ones are sent fast anyway."""
MAX_RATIO: Final = 100
"""The largest compression ratio sent. A service refuses ratios above 200; half of that allows for stricter proxies."""
# The fastest level: for graphs' JSON, higher levels save little and take several times as long.
_LEVEL: Final = 1
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def coded(plain: bytes) -> tuple[bytes, Mapping[str, str]]:
    """The body to send and its content-coding headers; uncoded when compression saves too little."""
    coding, compress = _CODING
    packed = compress(plain)
    if len(packed) > len(plain) * 0.9 or len(packed) * MAX_RATIO < len(plain):
        return plain, _NONE
    return packed, {"Content-Encoding": coding}


def _gzip(plain: bytes) -> bytes:
    return gzip.compress(plain, _LEVEL, mtime=0)


def _chosen() -> tuple[str, Callable[[bytes], bytes]]:
    """zstd if Python has it (3.14) or its backport is installed, else gzip."""
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        return "gzip", _gzip
    compress = cast("Callable[[bytes, int], bytes]", zstd.compress)
    return "zstd", lambda plain: compress(plain, _LEVEL)


_CODING: Final = _chosen()

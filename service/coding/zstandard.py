"""The standard library's zstd, or before Python 3.14 its backport; and what a frame says of itself (RFC 8878)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Frame", "read_frame", "zstd"]

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"
_SINGLE_SEGMENT: Final = 0x20


@dataclass(frozen=True, slots=True)
class Frame:
    """What the header of a frame states, in bytes: the window that its reader needs, and its content if it says so."""

    window: int
    content: int | None


def read_frame(head: bytes) -> Frame | None:
    """What the frame that begins with `head` states; None when more of it is needed, of 18 bytes at most.

    ValueError when no frame begins so.
    """
    if len(head) < 5:
        return None
    if head[1:4] == _SKIPPABLE and head[0] >> 4 == 5:
        return Frame(0, 0)
    if head[:4] != _MAGIC:
        raise ValueError("no zstd frame begins here")
    descriptor = head[4]
    is_single = bool(descriptor & _SINGLE_SEGMENT)
    size = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    begin = 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3]
    if len(head) < begin + size:
        return None
    stated = int.from_bytes(head[begin : begin + size], "little") + (256 if size == 2 else 0)
    return Frame(stated if is_single else _window(head[5]), stated if size else None)


def _window(descriptor: int) -> int:
    base = 1 << (10 + (descriptor >> 3))
    return base + base // 8 * (descriptor & 7)

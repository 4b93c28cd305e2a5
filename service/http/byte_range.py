"""The Range header, as RFC 9110 section 14 has it, for one range."""

from __future__ import annotations

import re
from typing import Final

_ONE_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")


class UnsatisfiableRange(Exception):
    """The range has no byte in common with the content."""


def parse_range(header: str | None, length: int) -> range | None:
    """The bytes that `header` asks for of a content of `length` bytes; None when all are to be sent.

    A header that is not understood, several ranges included, is ignored, as the RFC allows.
    """
    match = _ONE_RANGE.fullmatch(header.strip()) if header else None
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        if int(suffix) == 0 or length == 0:
            raise UnsatisfiableRange
        return range(max(length - int(suffix), 0), length)
    if last is not None and int(last) < int(first):
        return None
    if int(first) >= length:
        raise UnsatisfiableRange
    return range(int(first), min(int(last) + 1, length) if last is not None else length)

"""Escaping of untrusted text for terminals."""

from __future__ import annotations

import re
from typing import Final

# C0, DEL and C1, line separators, bidirectional controls, and lone surrogates, which no encoding can represent.
_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE: Final = re.compile(f"[{_CONTROLS}]")
_BESIDE_LINES: Final = re.compile(rf"(?!\n)[{_CONTROLS}]")
_HALVES: Final = re.compile(r"[\ud800-\udfff]")


def in_a_line(text: str) -> str:
    """The text with control characters escaped as `\\x1b`, and without line breaks."""
    return _IN_A_LINE.sub(_escaped, text)


def in_lines(text: str) -> str:
    """The text with control characters escaped as `\\x1b`; line breaks are kept."""
    return _BESIDE_LINES.sub(_escaped, text)


def as_unicode(text: str) -> str:
    """The text with every byte that is not UTF-8 escaped as `\\xff`, because reports must be UTF-8."""
    return _HALVES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    # Python represents bytes of a file name that are not UTF-8 as U+DC80 to U+DCFF.
    byte = number - 0xDC00 if 0xDC80 <= number <= 0xDCFF else number
    return f"\\x{byte:02x}" if byte < 1 << 8 else f"\\u{byte:04x}"

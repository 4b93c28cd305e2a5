"""Other people's text, as it may stand at a terminal."""

from __future__ import annotations

import re
from typing import Final

# C0, DEL and C1, what breaks lines or has text run the other way, and halves of characters, which no encoding has.
_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE: Final = re.compile(f"[{_CONTROLS}]")
_BESIDE_LINES: Final = re.compile(rf"(?!\n)[{_CONTROLS}]")
_HALVES: Final = re.compile(r"[\ud800-\udfff]")


def in_a_line(text: str) -> str:
    """The text with `\\x1b` for what a terminal would obey, and no line breaks."""
    return _IN_A_LINE.sub(_escaped, text)


def in_lines(text: str) -> str:
    """The text with `\\x1b` for what a terminal would obey; its lines stay lines."""
    return _BESIDE_LINES.sub(_escaped, text)


def as_unicode(text: str) -> str:
    """The text with `\\xff` and the like for every byte that is not UTF-8, which no report could hold."""
    return _HALVES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    # Python has the bytes of a file's name that are not UTF-8 as U+DC80 to U+DCFF.
    byte = number - 0xDC00 if 0xDC80 <= number <= 0xDCFF else number
    return f"\\x{byte:02x}" if byte < 1 << 8 else f"\\u{byte:04x}"

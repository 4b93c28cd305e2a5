"""Escaping of untrusted file names for terminals and build machines."""

from __future__ import annotations

import re
from typing import Final

from ..printable import in_a_line

# Build machines execute `##[error]` and `##vso[…]` anywhere in a line.
_OBEYED: Final = re.compile(r"#(?=#\w*\[)")


def escaped(text: str) -> str:
    """The text on one line, with `\\x1b` and the like for what a terminal or a build machine would obey."""
    return _OBEYED.sub(r"\\x23", in_a_line(text))

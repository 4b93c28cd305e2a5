"""What PTX of a kernel may declare `.extern`: the memory that its blocks share, whose size is its launch's."""

from __future__ import annotations

import re
from typing import Final

_EXTERNAL: Final = re.compile(r"\.extern\b(?!\s+\.shared\b)[^\n;]*")


def external_declarations(ptx: str) -> list[str]:
    """The declarations, each once, of functions and variables that the driver or a linker would have to find."""
    return list(dict.fromkeys(found[0].strip() for found in _EXTERNAL.finditer(ptx)))

"""The rule for `.extern` declarations in a kernel's PTX: only dynamic shared memory is allowed."""

from __future__ import annotations

import re
from typing import Final

_EXTERNAL: Final = re.compile(r"\.extern\b(?!\s+\.shared\b)[^\n;]*")


def external_declarations(ptx: str) -> list[str]:
    """The declarations, each once, of functions and variables that the driver or a linker would have to resolve."""
    return list(dict.fromkeys(found[0].strip() for found in _EXTERNAL.finditer(ptx)))

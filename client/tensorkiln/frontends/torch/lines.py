"""The user's line in a stack trace that torch keeps beside a node."""

from __future__ import annotations

import re
from typing import Final

_FRAME: Final = re.compile(r'File "([^"\n]*)", line (\d+), in ([^\n]*)(?:\n[ \t]+([^\n]+))?')
_TORCHS_OWN: Final = re.compile(r"(^|[/\\])torch[/\\](nn|fx|_|functional|export|utils|autograd|distributions)")


def user_line(trace: str | None) -> str:
    """`file.py:12 in forward: x = self.linear(x)` of the innermost frame that is not torch's own; empty for none."""
    frames = _FRAME.findall(trace or "")
    own = [frame for frame in frames if not _TORCHS_OWN.search(frame[0])]
    if not own:
        return ""
    path, line, function, code = own[-1]
    return f"{path}:{line} in {function}" + (f": {code.strip()}" if code else "")

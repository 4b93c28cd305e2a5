"""The line of the user's code in the stack trace of a node."""

from __future__ import annotations

import re
from typing import Final

_FRAME: Final = re.compile(r'File "([^"\n]*)", line (\d+), in ([^\n]*)(?:\n[ \t]+([^\n]+))?')
_TORCHS_OWN: Final = re.compile(r"(^|[/\\])torch[/\\](nn|fx|_|functional|export|utils|autograd|distributions)")


def user_line(trace: str | None) -> str:
    """The innermost frame outside torch, as `file.py:12 in forward: x = self.linear(x)`; empty without one."""
    frames = _FRAME.findall(trace or "")
    own = [frame for frame in frames if not _TORCHS_OWN.search(frame[0])]
    if not own:
        return ""
    path, line, function, code = own[-1]
    return f"{path}:{line} in {function}" + (f": {code.strip()}" if code else "")

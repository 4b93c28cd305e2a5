"""The source location of an operation; in modules exported by JAX, a line of the user's Python."""

from __future__ import annotations

from typing import Final

from dialect.mlir import ir

_MOST: Final = 200
"""The most characters of a location in a message."""
_DEPTH: Final = 16


def place(location: ir.Location) -> str:
    """The innermost file, line and column, and the outermost name; at most 200 printable characters."""
    name, file = _parts(location, _DEPTH)
    found = f"{file} ({name})" if file and name else file or name
    return shown(found, _MOST)


def shown(text: str, most: int) -> str:
    """A text of the module for a message: at most `most` characters, unprintable ones replaced by `?`."""
    part = "".join(char if char.isprintable() else "?" for char in text[: most + 1])
    return part if len(part) <= most else f"{part[: most - 1]}…"


def _parts(location: ir.Location, depth: int) -> tuple[str, str]:
    if depth == 0:
        return "", ""
    if isinstance(location, ir.FileLineColLoc):
        return "", f"{location.filename}:{location.start_line}:{location.start_col}"
    if isinstance(location, ir.NameLoc):
        return location.name_str, _parts(location.child_loc, depth - 1)[1]
    if isinstance(location, ir.CallSiteLoc):
        name, file = _parts(location.callee, depth - 1)
        if file:
            return name, file
        other, file = _parts(location.caller, depth - 1)
        return name or other, file
    if isinstance(location, ir.FusedLoc):
        # Only the first: nested fused locations can be exponentially many.
        return _parts(location.locations[0], depth - 1) if location.locations else ("", "")
    return "", ""

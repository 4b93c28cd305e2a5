"""Ends badly, in the way that the graph of the case in a file is called: what a test has a trial take for the judge."""

from __future__ import annotations

import ctypes
from pathlib import Path

from .trial import read


def main(path: str) -> None:
    match read(Path(path).read_text()).graph.name:
        case "fault":
            ctypes.string_at(0)
        case name:
            raise ZeroDivisionError(f"of {name}")

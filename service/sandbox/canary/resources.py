"""Attempts at more than the limits of a task."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

from .victim import Attempts, Victim

DESCRIPTORS: Final = 200


def _grow_a_file(victim: Victim) -> None:
    large = Path("large")
    try:
        with large.open("wb") as file:
            file.truncate(victim.file_bytes)
    finally:
        large.unlink()


def _open_files(_victim: Victim) -> None:
    held: list[int] = []
    try:
        for _ in range(DESCRIPTORS):
            held.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in held:
            os.close(descriptor)


RESOURCES: Final[Attempts] = {
    "write a file above its limit": _grow_a_file,
    "have memory above its limit": lambda victim: mmap.mmap(-1, victim.memory_bytes).close(),
    f"open {DESCRIPTORS} files": _open_files,
}

"""What a task must be able to do, so that confining it does not break it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from .victim import Attempts, Victim


def _keep_a_file(_victim: Victim) -> None:
    kept = Path("kept")
    kept.write_bytes(b"kept")
    kept.replace("moved")
    Path("moved").unlink()


NEEDS: Final[Attempts] = {
    "read its own program": lambda _: Path(__file__).read_bytes(),
    "list Python's library": lambda _: os.listdir(Path(os.__file__).parent),
    "load a library": lambda _: ctypes.CDLL("libm.so.6"),
    "keep a file of its own": _keep_a_file,
}

"""What probes ask of a worker, where it tells its figures: whether one of its processes is there for orders."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the directory that the worker's processes share; without figures there is none."""
_SIGNS: Final = "sign."
_FIT: Final = "fit"
# As a sign in the store; what counts there is imported too early here for the figures of several processes.
_LEASE_S: Final = 8.0


def tell(*, is_fit: bool) -> None:
    """Say that this process has signed, and whether it compiles and gets orders."""
    directory = os.environ.get(DIRECTORY)
    if directory:
        sign = Path(directory) / f"{_SIGNS}{os.getpid()}"
        unfinished = sign.with_name(f"unfinished.{os.getpid()}")
        unfinished.write_text(_FIT if is_fit else "")
        unfinished.replace(sign)


def is_ready(directory: Path) -> bool:
    """Whether a process of the worker has signed within a lease, and compiles and gets orders."""
    since = time.time() - _LEASE_S
    return any(sign.stat().st_mtime > since and sign.read_text() == _FIT for sign in directory.glob(f"{_SIGNS}*"))

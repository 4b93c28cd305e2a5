"""Attempts on files that are not the canary's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from .prey import Attempts, Prey


def of_others(prey: Prey) -> Attempts:
    """Reading each of the files that the prey names."""
    return {f"read {path}": lambda _, path=path: path.read_bytes() for path in prey.files}


def _open_and_truncate(prey: Prey) -> None:
    os.close(os.open(prey.planted, os.O_RDONLY | os.O_TRUNC))


def _create(prey: Prey) -> None:
    made = prey.planted.with_name("made")
    made.write_bytes(b"made")
    made.unlink()


def _rename(prey: Prey) -> None:
    moved = prey.planted.with_name("moved")
    prey.planted.rename(moved)
    moved.rename(prey.planted)


def _link(prey: Prey) -> None:
    os.link(prey.planted, "linked")
    Path("linked").unlink()


def _share_memory(_prey: Prey) -> None:
    shared = Path("/dev/shm", f"kiln-canary-{os.getpid()}")
    shared.write_bytes(b"shared")
    shared.unlink()


FILES: Final[Attempts] = {
    "read a file that is not its own": lambda prey: prey.planted.read_bytes(),
    "list a directory that is not its own": lambda prey: os.listdir(prey.planted.parent),
    "write a file that is not its own": lambda prey: prey.planted.open("r+b").close(),
    "truncate a file that is not its own": lambda prey: os.truncate(prey.planted, 0),
    "truncate a file by opening it": _open_and_truncate,
    "make a file outside its directory": _create,
    "rename a file that is not its own": _rename,
    "link a file that is not its own": _link,
    "change the mode of a file": lambda prey: os.chmod(prey.planted, 0o600),
    "change the times of a file": lambda prey: os.utime(prey.planted),
    "read the environment of another process": lambda prey: Path(f"/proc/{prey.pid}/environ").read_bytes(),
    "open the memory of another process": lambda prey: Path(f"/proc/{prey.pid}/mem").open("rb").close(),
    "share memory by name": _share_memory,
}

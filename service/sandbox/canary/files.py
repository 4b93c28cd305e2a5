"""Attempts on foreign files and beyond resource limits, and operations that a task must be able to do."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Final

from .victim import Attempts, Victim


def of_others(victim: Victim) -> Attempts:
    """Attempts to read each of the victim's `files`."""
    return {f"read {path}": lambda _, path=path: path.read_bytes() for path in victim.files}


def _open_and_truncate(victim: Victim) -> None:
    os.close(os.open(victim.planted, os.O_RDONLY | os.O_TRUNC))


def _create(victim: Victim) -> None:
    made = victim.planted.with_name("made")
    made.write_bytes(b"made")
    made.unlink()


def _rename(victim: Victim) -> None:
    moved = victim.planted.with_name("moved")
    victim.planted.rename(moved)
    moved.rename(victim.planted)


def _link(victim: Victim) -> None:
    os.link(victim.planted, "linked")
    Path("linked").unlink()


def _share_memory(_victim: Victim) -> None:
    shared = Path("/dev/shm", f"kiln-canary-{os.getpid()}")
    shared.write_bytes(b"shared")
    shared.unlink()


FILES: Final[Attempts] = {
    "read a file that is not its own": lambda victim: victim.planted.read_bytes(),
    "list a directory that is not its own": lambda victim: os.listdir(victim.planted.parent),
    "write a file that is not its own": lambda victim: victim.planted.open("r+b").close(),
    "truncate a file that is not its own": lambda victim: os.truncate(victim.planted, 0),
    "truncate a file by opening it": _open_and_truncate,
    "make a file outside its directory": _create,
    "rename a file that is not its own": _rename,
    "link a file that is not its own": _link,
    "change the mode of a file": lambda victim: os.chmod(victim.planted, 0o600),
    "change the times of a file": lambda victim: os.utime(victim.planted),
    "read the environment of another process": lambda victim: Path(f"/proc/{victim.pid}/environ").read_bytes(),
    "open the memory of another process": lambda victim: Path(f"/proc/{victim.pid}/mem").open("rb").close(),
    "share memory by name": _share_memory,
}


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

"""What a power failure leaves of a directory, at the worst: a disk that keeps only what it was told to keep."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

Left: TypeAlias = Mapping[str, bytes]
"""The files that are left, by path."""


class Power:
    """Watches what is synchronised below `root`. With `cuts`, what a failure would leave is kept at every step."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root: Final = root
        self.cuts: list[Left] | None = None
        self.synchronised: list[Path] = []
        self.threads: set[str] = set()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._lock = threading.RLock()
        for name in ("fsync", "replace", "link", "unlink"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            with self._lock:
                real(*arguments)
                if name == "fsync":
                    self._keep(arguments[0])
                if self.cuts is not None:
                    self.cut()

        return call

    def cut(self) -> None:
        """Keep what a failure would leave now: of a disk that does nothing of itself, and of one whose names come
        before the bytes."""
        with self._lock:
            if self.cuts is not None:
                self.cuts += [self.lazily(), self.eagerly()]

    def lazily(self) -> Left:
        """What is left where nothing comes to the disk that was not synchronised."""
        left: dict[str, bytes] = {}
        self._collect("", self.root.stat().st_ino, left)
        return left

    def eagerly(self) -> Left:
        """What is left where names come to the disk at once, and bytes when they are synchronised."""
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): self._bytes.get(path.stat().st_ino, b"") for path in files}

    def _keep(self, descriptor: int) -> None:
        found, path = os.fstat(descriptor), Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.synchronised.append(path)
        self.threads.add(threading.current_thread().name)
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(path)}
        else:
            self._bytes[found.st_ino] = path.read_bytes()

    def _collect(self, path: str, folder: int, left: dict[str, bytes]) -> None:
        for name, (inode, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                self._collect(f"{path}{name}/", inode, left)
            else:
                left[path + name] = self._bytes.get(inode, b"")


def restored(left: Left, to: Path) -> Path:
    """The directory as it is when the power is back."""
    for path, content in left.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(content)
    return to

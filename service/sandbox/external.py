"""The fork server inside a container of its own, made by bubblewrap (version 0.7 or newer)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tensorkiln.errors import UnavailableError

from . import paths

SCRATCH_BYTES: Final = 1 << 30
"""Size of the tmpfs that holds the files of all tasks in the container."""

NAMESPACES: Final = ("mnt", "pid", "net", "ipc")
"""Namespaces that the container does not share with the service."""

_SYSTEM: Final = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu")
_PACKAGES: Final = ("tensorkiln_server", "service", "tensorkiln", "passes", "stablehlo", "dialect")
_OPTIONS: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "kiln")


def namespaces() -> tuple[str, ...]:
    """Identifiers of this process's namespaces, in the order of `NAMESPACES`."""
    return tuple(os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES)


def inside(program: Sequence[str], scratch: str, warm_ups: Iterable[str]) -> list[str]:
    """Build the bubblewrap command that runs `program` with no network and its own PID and mount namespaces.

    It sees, read-only, the system's libraries, Python with its installed packages, this compiler and the packages of
    `warm_ups`; `scratch` is empty and writable. UnavailableError without bubblewrap.
    """
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise UnavailableError("KILN_ISOLATION=bwrap: there is no bwrap on the PATH; install bubblewrap.")
    packages = (*_PACKAGES, *(name.partition(":")[0].partition(".")[0] for name in warm_ups))
    installed = (Path(sys.prefix), Path(sys.base_prefix), *paths.installation(), *_sources(packages))
    return [
        *(bubblewrap, *_OPTIONS, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(word for path in _SYSTEM for word in _show(Path(path))),
        *(word for path in _outermost(installed) for word in _show(path)),
        *("--size", str(SCRATCH_BYTES), "--tmpfs", scratch, "--chdir", "/", "--", *program),
    ]


def _sources(packages: Iterable[str]) -> Iterator[Path]:
    """Directories of `packages` on sys.path. Their siblings stay hidden: sys.path begins with the working directory."""
    for entry in sys.path:
        for package in packages:
            folder = Path(entry, package)
            if entry and folder.is_dir():
                yield folder


def _outermost(folders: Iterable[Path]) -> Iterator[Path]:
    """Each folder as named and as resolved, unless it lies in a system folder or in one already yielded."""
    seen = [Path(path) for path in _SYSTEM]
    for folder in sorted({name for each in folders for name in (each, each.resolve())}):
        if not any(folder.is_relative_to(other) for other in seen):
            seen.append(folder)
            yield folder


def _show(path: Path) -> tuple[str, ...]:
    if path.is_symlink():
        return ("--symlink", os.readlink(path), str(path))
    return ("--ro-bind-try", str(path), str(path))

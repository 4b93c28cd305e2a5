"""The files that a task may open beside its own: those of Python, of what the fork server loaded, and of the loader."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
# What the C library and LLVM ask for the number and the kind of the processors.
_MACHINE: Final = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/dev/urandom")
WRITABLE: Final = (Path("/dev/null"),)


def readable() -> tuple[Path, ...]:
    """Directories and single files, none of them below another, of this process as it is now.

    Of PYTHONPATH, only the packages that are loaded: it begins with the directory where the service was started.
    """
    return outermost(
        path
        for path in (*map(Path, (*_LIBRARIES, *_MACHINE)), *installation(), *_loaded(sys.modules.copy().items()))
        if path.exists()
    )


def installation() -> Iterator[Path]:
    """Where Python and what is installed for it are, and where the environment says that libraries are."""
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name))
    yield Path(sys.base_prefix, "lib")
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if os.path.isabs(entry):
            yield Path(entry)


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The same files with links resolved, less what is below another."""
    kept: list[Path] = []
    for path in sorted({path.resolve() for path in paths}, key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return tuple(sorted(kept))


def _loaded(modules: Iterable[tuple[str, ModuleType]]) -> Iterator[Path]:
    for name, module in modules:
        if "." in name:
            continue
        for place in getattr(module, "__path__", None) or (getattr(module, "__file__", None),):
            if isinstance(place, str) and os.path.isabs(place):
                yield Path(place)

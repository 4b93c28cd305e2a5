"""The files that a task may read besides its own: Python's, those of loaded packages, and the dynamic loader's."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
# The C library and LLVM read the number and kind of the processors here.
_MACHINE: Final = ("/proc/cpuinfo", "/sys/devices/system/cpu", "/dev/urandom")
WRITABLE: Final = (Path("/dev/null"),)


def readable() -> tuple[Path, ...]:
    """Directories and files that tasks may read, none below another; of PYTHONPATH only the packages loaded now."""
    return outermost(
        path
        for path in (*map(Path, (*_LIBRARIES, *_MACHINE)), *installation(), *_loaded(sys.modules.copy().items()))
        if path.exists()
    )


def installation() -> Iterator[Path]:
    """Directories of Python, of its installed packages, and of LD_LIBRARY_PATH."""
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name))
    yield Path(sys.base_prefix, "lib")
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if os.path.isabs(entry):
            yield Path(entry)


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Resolve links and drop paths that lie below another."""
    resolved = {path.resolve() for path in paths}
    return tuple(sorted(path for path in resolved if resolved.isdisjoint(path.parents)))


def _loaded(modules: Iterable[tuple[str, ModuleType]]) -> Iterator[Path]:
    for name, module in modules:
        if "." in name:
            continue
        for place in getattr(module, "__path__", None) or (getattr(module, "__file__", None),):
            if isinstance(place, str) and os.path.isabs(place):
                yield Path(place)

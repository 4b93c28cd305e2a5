"""A description of the machine: processor, cores, caches, memory, system, and load."""

from __future__ import annotations

import os
import platform
from pathlib import Path

CPU = Path("/sys/devices/system/cpu/cpu0/cache")


def machine() -> dict[str, str]:
    """The properties of the machine, by name, as text."""
    info = _fields(Path("/proc/cpuinfo"))
    memory_kb = int(_fields(Path("/proc/meminfo"))["MemTotal"].split()[0])
    numbers = f"family {info.get('cpu family', '?')}, model {info.get('model', '?')}"
    widest = "AVX-512" if "avx512f" in info.get("flags", "") else "AVX2" if "avx2" in info.get("flags", "") else "SSE"
    return {
        "processor": f"{info.get('model name', platform.machine())} ({numbers}, {widest})",
        "cores": str(len(os.sched_getaffinity(0))),
        "caches": ", ".join(_caches()),
        "memory": f"{memory_kb / 2**20:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def _fields(path: Path) -> dict[str, str]:
    """The first value of each field in a file of `name: value` lines."""
    fields: dict[str, str] = {}
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields


def _caches() -> list[str]:
    found: list[str] = []
    for folder in sorted(CPU.glob("index*")):
        level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return found

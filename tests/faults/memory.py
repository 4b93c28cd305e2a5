"""What a process has resident, from the kernel."""

from __future__ import annotations

import re
from pathlib import Path


def resident_mib(pid: int) -> float:
    """MiB resident now."""
    return _field(pid, "VmRSS")


def forget_peak(pid: int) -> None:
    """From now on the peak is counted anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """MiB resident at most since `forget_peak`."""
    return _field(pid, "VmHWM")


def _field(pid: int, name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024

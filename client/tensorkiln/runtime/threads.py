"""How many threads a kernel may run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup")


def available_processors() -> int:
    """Processors that this process may run on, or fewer where its control groups allow less processor time.

    Threads beyond that time would stop all others until the next period.
    """
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(present, allowed_processors())))


def allowed_processors(groups: Path = GROUPS, own: Path = Path("/proc/self/cgroup")) -> float:
    """Seconds of processor time in each second that control groups allow; infinity without a limit.

    A process is bound by the limit of its group and by those around it: `cpu.max` of version 2, `cpu.cfs_quota_us` of
    version 1 (Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).
    """
    return min(_limits(groups, own), default=float("inf"))


def _limits(groups: Path, own: Path) -> Iterator[float]:
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = groups / "cpu" if controllers else groups
        inside = Path(path.lstrip("/"))
        for group in (inside, *inside.parents):
            yield from _limit(root / group)


def _limit(group: Path) -> Iterator[float]:
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = (word for name in names for word in (group / name).read_text().split())
            if int(quota) > 0:
                yield int(quota) / int(period)
        except (OSError, ValueError):  # another version, or no limit: "max"
            continue

"""How many processors there are for threads: by affinity, and by the limits of control groups."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tensorkiln.runtime.threads import allowed_processors, available_processors


def written(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """A tree of control groups, and the file that says which of them a process is in."""
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "cgroup", folder / "own"


@pytest.mark.parametrize(
    ("files", "allowed"),
    [
        ({"own": "0::/\n", "cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"own": "0::/\n", "cgroup/cpu.max": "max 100000\n"}, math.inf),
        ({"own": "0::/a/b\n", "cgroup/a/cpu.max": "200000 100000\n", "cgroup/a/b/cpu.max": "400000 100000\n"}, 2.0),
        ({"own": "0::/a\n", "cgroup/a/cpu.max": "max 100000\n", "cgroup/cpu.max": "300000 100000\n"}, 3.0),
        (
            {
                "own": "5:memory:/b\n4:cpu,cpuacct:/a\n",
                "cgroup/cpu/a/cpu.cfs_quota_us": "50000\n",
                "cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "own": "4:cpu,cpuacct:/\n",
                "cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            math.inf,
        ),
        ({"own": "0::/gone\n"}, math.inf),
        ({"own": "0::/\n", "cgroup/cpu.max": "garbage\n"}, math.inf),
    ],
    ids=["a limit", "no limit", "the group around it", "the root", "version 1", "version 1 without", "none", "garbage"],
)
def test_the_least_limit_of_all_groups_counts(files: dict[str, str], allowed: float, tmp_path: Path) -> None:
    assert allowed_processors(*written(tmp_path, files)) == allowed


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert allowed_processors(tmp_path / "cgroup", tmp_path / "own") == math.inf


def test_there_is_at_least_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.runtime.threads.allowed_processors", lambda: 0.25)
    assert available_processors() == 1
    monkeypatch.setattr("tensorkiln.runtime.threads.allowed_processors", lambda: math.inf)
    assert available_processors() >= 1

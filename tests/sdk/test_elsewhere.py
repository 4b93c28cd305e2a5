"""The SDK works on macOS and Windows, but for what needs Linux, which is refused by an error that says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SYSTEMS = ("win32", "darwin")


def test_all_but_running_on_this_cpu_works_on_other_systems(served: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.sdk.elsewhere", served, str(tmp_path), *SYSTEMS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for system, line in zip(SYSTEMS, done.stdout.splitlines(), strict=True):
        require_all_but_running(system, json.loads(line))


def require_all_but_running(system: str, said: dict[str, Any]) -> None:
    assert said["missing"] == []
    assert {"tensorkiln.embedded", "tensorkiln.parent_watchdog", "tensorkiln.cli.run", "tensorkiln.doctor.gpu"} <= {
        *said["imported"]
    }
    assert (said["layer"], said["one"], said["bundle"]) == (1, 1, "one")
    assert said["run"] == f"DeviceError: CPU programs run on Linux, and this system is {system}"
    assert said["embedded"].startswith(
        f"UnavailableError: The compile service runs on Linux, and this system is {system}"
    )
    assert "KILN_URL" in said["embedded"]
    assert said["validate"][0] == 0, said["validate"]
    assert said["compile"][0] == 0, said["compile"]
    assert f"runs on Linux, and this system is {system}" in " ".join(said["serve"].split())

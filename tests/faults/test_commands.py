"""The commands of a farm as its page has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.forked import forked_services


def run(module: str, *arguments: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment = {**clean, "KILN_HOME": str(home), **variables}
    if module == "service.worker":
        return forked_services().run(module, *arguments, cwd=Path.cwd(), env=environment)
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.xdist_group("farm")
def test_the_script_runs_a_farm_and_ends_it(tmp_path: Path) -> None:
    arguments = ("--services", "2", "--workers", "1", "--home", str(tmp_path / "farm"), "--check")
    done = run("tests.farm", *arguments, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("compiles: 200") == 2
    assert "stopped with [0, 0, 0]" in done.stdout


@pytest.mark.xdist_group("farm")
def test_the_script_ends_its_farm_however_often_it_is_told_to(tmp_path: Path) -> None:
    arguments = ("--services", "1", "--workers", "1", "--home", str(tmp_path / "farm"))
    command = [sys.executable, "-m", "tests.farm", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        while "Ctrl-C stops it." not in (line := script.stdout.readline()):
            assert line, script.stderr.read()
        for _ in range(3):
            script.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert "stopped with [0, 0]" in script.stdout.read()
        assert script.stderr.read() == ""
    assert script.returncode == 0


def test_a_worker_says_which_setting_it_cannot_read(tmp_path: Path) -> None:
    done = run("service.worker", home=tmp_path, KILN_OIDC="{x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("KILN_OIDC: ")
    assert "Traceback" not in done.stderr

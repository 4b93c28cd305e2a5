"""The commands beside the service itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", [["service.trust", "list"], ["service.identity", "list"]])
def test_a_setting_that_cannot_be_is_told_in_a_line(command: list[str]) -> None:
    variables = {**os.environ, "KILN_QUEUE": "many"}
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, env=variables, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("KILN_QUEUE: ")
    assert len(done.stderr.splitlines()) == 1

"""What the sandbox adds to a compile is little, and a script says how much."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.faults.size import FULL, sized

MAX_MS = 35.0


@pytest.mark.faults
def test_the_sandbox_adds_little_to_a_compile() -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.sandbox.overhead", str(sized(1, 100))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(done.stdout)
    added = re.findall(r"^job, (\S+) .* beyond the first way p50 +(\S+) ms", done.stdout, re.MULTILINE)
    assert len(added) == 2
    if FULL:
        assert all(float(ms) < MAX_MS for _, ms in added)

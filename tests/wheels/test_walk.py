"""What `.ci/wheels` refuses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.snippets import ROOT


def test_a_walk_that_takes_too_long_fails_and_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "WALK_S": "0.01", "TMPDIR": str(tmp_path)}
    done = subprocess.run([ROOT / ".ci/wheels"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "from the clone to the report it took more than 0.01 s" in done.stderr
    assert list(tmp_path.iterdir()) == []

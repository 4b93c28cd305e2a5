"""`.ci/wheels` and `.ci/run`: what they refuse, and what they ask of the tests."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.chromium import NAMES, REQUIRED
from tests.snippets import ROOT

BROWSERS = re.compile(r"^for browser in ([^;]+); do\n.*?^done\n", re.MULTILINE | re.DOTALL)


def test_a_walk_that_takes_too_long_fails_and_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "WALK_S": "0.01", "TMPDIR": str(tmp_path)}
    done = subprocess.run([ROOT / ".ci/wheels"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "from the clone to the report it took more than 0.01 s" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_page_tests_are_not_skipped_with_a_browser(tmp_path: Path) -> None:
    found = BROWSERS.search((ROOT / ".ci/run").read_text("utf-8"))
    assert found is not None
    assert tuple(found[1].split()) == NAMES

    def required() -> str:
        script = f"set -euo pipefail\n{found[0]}echo ${{{REQUIRED}:-no}}"
        environment = {name: value for name, value in os.environ.items() if name != REQUIRED}
        done = subprocess.run(
            ["/bin/bash", "-c", script], env={**environment, "PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert required() == "no"
    for name in NAMES:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert required() == "1"
        (tmp_path / name).unlink()

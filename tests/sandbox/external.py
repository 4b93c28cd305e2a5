"""Whether bubblewrap works here, found out by starting something in it."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest


@cache
def _complaint() -> str:
    program = shutil.which("bwrap")
    if program is None:
        return "there is no bwrap on the PATH"
    command = [program, "--unshare-all", "--ro-bind", "/", "/", "--size", "4096", "--tmpfs", "/tmp", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr or (f"bwrap ends with status {done.returncode}" if done.returncode else "")


needs_bwrap = pytest.mark.skipif(bool(_complaint()), reason=_complaint() or "bwrap works")

"""Other Pythons than this one, to see that a key is the same in each.

KILN_PYTHONS names them, separated by `:`. Without it they are every `python3.11`, `python3.12` and `python3.13` on PATH
that has what is needed: the dependencies of the client, and pytest. This makes one that has:

    python3.13 -m venv other && other/bin/pip install ./client pytest
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ON_PATH: Final = ("python3.11", "python3.12", "python3.13")
NONE: Final = (
    f"none of {', '.join(ON_PATH)} on PATH is another Python with the client's dependencies and pytest; "
    "KILN_PYTHONS names such"
)

_VERSION: Final = """
import platform, service.sandbox.tasks.prepare, tests.contract.random_graphs
print(platform.python_version())
"""


def other_interpreters() -> dict[str, str]:
    """The executable of each by its version. RuntimeError when one that KILN_PYTHONS names lacks something."""
    named = [path for path in os.environ.get("KILN_PYTHONS", "").split(os.pathsep) if path]
    found: dict[str, str] = {}
    for python in named or filter(None, map(shutil.which, ON_PATH)):
        ran = run(python, _VERSION)
        if ran.returncode == 0:
            found.setdefault(ran.stdout.strip(), python)
        elif named:
            raise RuntimeError(f"{python}, which KILN_PYTHONS names, cannot read a request:\n{ran.stderr}")
    found.pop(sys.version.split()[0], None)
    return found


def run(python: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script in another Python, which takes this tree's modules and only what they depend on from its own place."""
    line = [python, "-c", script, *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'client'}{os.pathsep}{ROOT}"}
    return subprocess.run(line, capture_output=True, text=True, timeout=280, env=environment, cwd=ROOT)

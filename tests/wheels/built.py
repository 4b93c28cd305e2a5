"""Both distributions built from this tree, and a Python that imports them and nothing of the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from tests.snippets import ROOT

EPOCH: Final = "1790000000"
FOLDERS: Final = {"tensorkiln": ROOT / "client", "tensorkiln_server": ROOT}
_BESIDE: Final = ("client", "dialect", "stablehlo", "passes", "service", "tensorkiln_server")
_FILES: Final = ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore")
_APART: Final = """
import os, sys
own = os.path.dirname(__file__)
trees = [each for each in sys.path if os.path.isdir(each + "/passes") or os.path.isdir(each + "/tensorkiln")]
sys.path[:] = [each for each in sys.path if each == own or each not in trees]
"""


def copied_tree(to: Path) -> Path:
    """What the distributions are made of, in another folder, with other times and modes."""
    for name in _BESIDE:
        shutil.copytree(
            ROOT / name,
            to / name,
            copy_function=shutil.copyfile,
            ignore=shutil.ignore_patterns("*.pyc", "node_modules"),
        )
    for name in _FILES:
        shutil.copyfile(ROOT / name, to / name)
    for path in to.rglob("*.py"):
        path.chmod(0o600)
    return to


def build(folder: Path, to: Path) -> list[Path]:
    """A wheel and an sdist of the distribution in `folder`, by the backend and nothing else."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(to), "-t", "wheel", "-t", "sdist"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return sorted(to.iterdir())


class Installed:
    """Wheels unpacked into a folder, which a Python of its own imports instead of the tree."""

    def __init__(self, wheels: list[Path], folder: Path) -> None:
        self.folder = folder
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        # The environment of the tests has the tree on its path.
        (folder / "sitecustomize.py").write_text(_APART)

    def run(self, *arguments: str, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
        """Python with `arguments` in the folder `cwd`, and KILN_* variables from `settings`."""
        stated = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-P", "-W", "error", *arguments],
            cwd=cwd,
            env={**os.environ, **stated, **settings},
            capture_output=True,
            text=True,
            timeout=120,
        )

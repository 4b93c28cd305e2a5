"""The README's Python and its curl command as files, for `.ci/wheels`: `python -m tests.wheels.readme FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.snippets import ROOT, blocks

FILES = {"python": "python.py", "sh": "curl.sh"}


def write(folder: Path) -> None:
    """Each language's blocks, one after the other, in a file of `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, name in FILES.items():
        found = blocks(ROOT / "README.md", language)
        assert found, f"the README has no block of {language}"
        (folder / name).write_text("\n".join(block.text for block in found), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

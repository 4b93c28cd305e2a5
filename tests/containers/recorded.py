"""Stand-ins that record how they are called, for the builder, the scanner and the signer of images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

DIGEST = "sha256:" + "5e" * 32
COMMIT = "c0" * 20
RECORDED = ("docker", "cosign", "grype", "pip-audit", "git")
_NEEDED = ("bash", "dirname", "env", "grep", "mktemp", "rm")
# Answers what the script asks, fails where the test says so, and has nothing of the image that the test takes away.
_STAND_IN = f"""#!{sys.executable} -IS
import json, os, sys
from pathlib import Path
name, words = Path(sys.argv[0]).name, sys.argv[1:]
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps([name, *words]) + "\\n")
line = " ".join([name, *words])
if "--metadata-file" in words:
    Path(words[words.index("--metadata-file") + 1]).write_text(json.dumps({{"containerimage.digest": "{DIGEST}"}}))
if "Manifest.Digest" in line:
    print("{DIGEST}")
elif ".SBOM" in line or ".Provenance" in line:
    print("null" if os.environ["LACKS"] and os.environ["LACKS"] in line else "{{}}")
elif "imagetools inspect" in line:
    print("ERROR: " + (os.environ["SAYS"] or "registry.example.org/tensorkiln: not found"), file=sys.stderr)
    sys.exit(0 if os.environ["IS_THERE"] else 1)
elif line == "git status --porcelain":
    print(os.environ["CHANGED"], end="")
elif line == "git rev-parse HEAD":
    print("{COMMIT}")
sys.exit(1 if os.environ["FAILS"] and os.environ["FAILS"] in line else 0)
"""


class Recorded:
    """`script` where nothing is installed but stand-ins and what it is written in, in `folder`."""

    def __init__(self, script: Path, folder: Path) -> None:
        self._script = script
        self._path = folder / "bin"
        self._record = folder / "record"
        self._path.mkdir()
        self._record.touch()
        for name in RECORDED:
            (self._path / name).write_text(_STAND_IN)
            (self._path / name).chmod(0o755)
        for name in _NEEDED:
            found = shutil.which(name)
            assert found is not None, name
            (self._path / name).symlink_to(found)
        (self._path / "python3").symlink_to(sys.executable)

    def without(self, tool: str) -> None:
        """Uninstall one."""
        (self._path / tool).unlink()

    def run(self, *arguments: str, **told: str) -> subprocess.CompletedProcess[str]:
        """`fails`, `lacks`, `is_there`, `changed`, `says`: see the stand-in. `base` is the script's own."""
        variables = dict.fromkeys(("FAILS", "LACKS", "IS_THERE", "CHANGED", "SAYS"), "")
        variables |= {name.upper(): text for name, text in told.items()}
        environment = {"PATH": str(self._path), "RECORD": str(self._record), "HOME": os.devnull, **variables}
        return subprocess.run([self._script, *arguments], env=environment, capture_output=True, text=True, timeout=120)

    @property
    def calls(self) -> list[list[str]]:
        """The command lines so far."""
        return [json.loads(line) for line in self._record.read_text().splitlines()]

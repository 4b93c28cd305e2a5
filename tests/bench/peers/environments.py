"""The peers' virtual environments, created from pinned requirements and recreated when these change."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.bench.peers.peers import REQUIREMENTS, Peer
from tests.bench.peers.process import ROOT, reason

FOLDER: Final = ROOT / ".peers"


def pythons(
    peers: Iterable[Peer], *, install: bool, folder: Path = FOLDER, requirements: Path = REQUIREMENTS
) -> tuple[dict[str, Path], dict[str, str]]:
    """The interpreters by name of the peer, and the reasons for peers without one.

    With `install`, missing and outdated environments are created, which takes minutes and some GB for all.
    """
    found: dict[str, Path] = {}
    missing: dict[str, str] = {}
    outcomes: dict[str, Path | str] = {"": Path(sys.executable)}
    for peer in peers:
        if peer.environment not in outcomes:
            outcomes[peer.environment] = _environment(requirements / f"{peer.environment}.txt", folder, install)
        outcome = outcomes[peer.environment]
        if isinstance(outcome, Path):
            found[peer.name] = outcome
        else:
            missing[peer.name] = outcome
    return found, missing


def _environment(requirements: Path, folder: Path, install: bool) -> Path | str:
    """The interpreter of the environment, or the reason why there is none."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    place = folder / requirements.stem
    stamp = place / "installed"
    python = place / "bin" / "python"
    if stamp.exists() and stamp.read_text() == digest:
        return python
    if not install:
        return "not installed: `make bench-peers` does it"
    print(f"making the environment {requirements.stem}", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run([*pip, "-r", str(requirements)], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        return reason(f"cannot be installed: {(errors or ['pip says no reason'])[-1]}")
    stamp.write_text(digest)
    return python

"""The directories of the client: whether they can be written, and whether what they hold is whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..trust.policy import Policy
from .finding import Finding, fail, ok, warn

_SAMPLE: Final = 200
"""Files of each kind that are read and hashed."""
_BY_DIGEST: Final = ("artifacts", "programs")


def look(policy: Policy) -> Iterator[Finding]:
    """The cache of programs and artifacts, and the directory of trusted keys."""
    problem = _unwritable(policy.cache)
    if problem is not None:
        advice = "every start fetches its programs again; name a directory of yours in KILN_CACHE_DIR"
        yield warn("cache", problem, advice)
    else:
        yield _sound(policy.cache)
    problem = _unwritable(policy.config)
    if problem is not None:
        advice = "a service's keys are believed anew in every process; name a directory of yours in KILN_CONFIG_DIR"
        yield fail("trusted keys", problem, advice)


def _sound(cache: Path) -> Finding:
    looked, damaged = 0, list[Path]()
    for folder in _BY_DIGEST:
        newest = sorted((cache / folder).glob("[0-9a-f]*"), key=_modified, reverse=True)[:_SAMPLE]
        looked += len(newest)
        damaged += [path for path in newest if not _is_whole(path)]
    if damaged:
        advice = f"nothing: they are fetched again when needed. To look for a failing disk, begin with {damaged[0]}"
        return warn("cache", f"{len(damaged)} of {looked} files in {cache} are damaged", advice)
    return ok("cache", f"{cache} can be written; {looked} files in it are whole")


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_whole(path: Path) -> bool:
    try:
        return sha256(path.read_bytes()).hexdigest() == path.name
    except FileNotFoundError:
        return True  # evicted meanwhile
    except OSError:
        return False


def _unwritable(directory: Path) -> str | None:
    """Why nothing can be written to a directory, which is made where there is none."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=directory, prefix=".new-")
        os.close(handle)
        os.unlink(path)
    except OSError as error:
        return f"{directory} cannot be written: {error.strerror or error}"
    return None

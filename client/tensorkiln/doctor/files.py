"""Checks of the client's directories: whether they are writable, and their files undamaged."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ..limits import SHA256_PATTERN
from ..trust.policy import Policy
from ..trust.record import SignedRecord
from .finding import Finding, fail, ok, warn

_SAMPLE: Final = 200
"""The most files of each kind that are read."""
_DIGEST: Final = re.compile(SHA256_PATTERN.encode())


def look(policy: Policy) -> Iterator[Finding]:
    """Check the cache of programs and artifacts, and the directory of trusted keys."""
    problem = _unwritable(policy.cache)
    if problem is not None:
        advice = "every start fetches its programs again; name a writable directory in KILN_CACHE_DIR"
        yield warn("cache", problem, advice)
    else:
        yield _sound(policy.cache)
    problem = _unwritable(policy.config)
    if problem is not None:
        advice = (
            "every process trusts a service's keys on first use again; name a writable directory in KILN_CONFIG_DIR"
        )
        yield fail("trusted keys", problem, advice)


def _sound(cache: Path) -> Finding:
    looked, damaged = 0, list[Path]()
    for folder, is_sound in _KINDS.items():
        newest = sorted((cache / folder).glob("[0-9a-f]*"), key=_modified, reverse=True)[:_SAMPLE]
        looked += len(newest)
        damaged += [path for path in newest if not _is_whole(path, is_sound)]
    if damaged:
        advice = (
            "nothing, unless KILN_OFFLINE is set: they are fetched again when needed. To look for a failing disk, "
            f"begin with {damaged[0]}"
        )
        return warn("cache", f"{len(damaged)} of {looked} files in {cache} are damaged", advice)
    return ok("cache", f"{cache} can be written; {looked} files in it are whole")


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_whole(path: Path, is_sound: Callable[[str, bytes], bool]) -> bool:
    try:
        return is_sound(path.name, path.read_bytes())
    except FileNotFoundError:
        return True  # evicted meanwhile
    except OSError:
        return False


def _is_named_by_digest(name: str, content: bytes) -> bool:
    return sha256(content).hexdigest() == name


def _is_record(name: str, content: bytes) -> bool:
    """Whether a file is a signed record, or the action digest that answered a question."""
    del name  # it is the SHA-256 of what was asked
    if _DIGEST.fullmatch(content):
        return True
    try:
        SignedRecord.model_validate_json(content)
    except ValidationError:
        return False
    return True


_KINDS: Final = {"artifacts": _is_named_by_digest, "programs": _is_named_by_digest, "records": _is_record}
"""For each cache folder a function that tests a file, by name and content, for damage."""


def _unwritable(directory: Path) -> str | None:
    """Create the directory if needed, and return why it is not writable; None when it is."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=directory, prefix=".new-")
        os.close(handle)
        os.unlink(path)
    except OSError as error:
        return f"{directory} cannot be written: {error.strerror or error}"
    return None

"""The versions and hashes that the images are made of, and whoever resolves them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.snippets import ROOT

LOCKS = ROOT / "docker" / "lock"
OURS = {"tensorkiln": ROOT / "client", "tensorkiln-server": ROOT}
PLATFORMS = {"x86_64": "x86_64-manylinux_2_28", "aarch64": "aarch64-manylinux_2_28"}

_ENTRY = re.compile(r"([a-z0-9-]+)==(\S+?)((?: --hash=sha256:[0-9a-f]{64})+)")


@dataclass(frozen=True)
class Locked:
    """A version, and the SHA-256 of every file that may be installed as it."""

    version: str
    hashes: frozenset[str]


def lines(text: str) -> list[str]:
    """The lines of a file of requirements, joined, without comments."""
    joined = text.replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in joined if line.strip() and not line.startswith("#")]


def entries(text: str) -> dict[str, Locked]:
    """What a lock holds, by name. ValueError for a line that is no exact version with hashes."""
    found: dict[str, Locked] = {}
    for line in lines(text):
        entry = _ENTRY.fullmatch(line)
        if entry is None or entry[1] in found:
            raise ValueError(line)
        found[entry[1]] = Locked(entry[2], frozenset(re.findall(r"[0-9a-f]{64}", entry[3])))
    return found


def lock(name: str) -> dict[str, Locked]:
    """`images` or `tools`."""
    return entries((LOCKS / f"{name}.txt").read_text())


def project(distribution: str) -> dict[str, Any]:
    """What the pyproject.toml of one of our distributions says."""
    return tomllib.loads((OURS[distribution] / "pyproject.toml").read_text())


def required(distribution: str, extras: set[str], machine: str) -> Iterator[Requirement]:
    """What one of our distributions asks of others with these extras, on Linux and the Python of the images."""
    stated = project(distribution)["project"]
    environment = {"python_version": "3.11", "python_full_version": "3.11.9", "platform_machine": machine}
    for text in (
        *stated["dependencies"],
        *(each for extra in extras for each in stated["optional-dependencies"][extra]),
    ):
        requirement = Requirement(text)
        is_met = requirement.marker is None or requirement.marker.evaluate(environment)
        if is_met and canonicalize_name(requirement.name) not in OURS:
            yield requirement


def tool(name: str) -> str | None:
    """An executable of this environment, or one on the path."""
    return shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

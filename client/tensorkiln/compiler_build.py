"""What compiled a program: a digest over the compiler's sources and the versions of what it is made of.

Nothing of the compiler is imported for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SOURCES: Final = ("tensorkiln", "dialect", "stablehlo", "passes")
PARTS: Final = ("torch-mlir", "llvmlite", "numpy", "ml_dtypes", "nvidia-nvjitlink")
"""The assembler is one of them although it may be absent: a cubin is as it makes it."""


@dataclass(frozen=True, slots=True)
class Build:
    """`build_id` changes with any source file of the compiler and with the version of any part."""

    build_id: str
    versions: dict[str, str]


@cache
def build() -> Build:
    """The build of this installation."""
    versions = {name: _version(name) for name in PARTS}
    digest = sha256(repr(sorted(versions.items())).encode())
    for package in SOURCES:
        for path, name in sorted(_sources(package)):
            digest.update(name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return Build(digest.hexdigest(), versions)


def _sources(package: str) -> list[tuple[Path, str]]:
    spec = find_spec(package)
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec is not None else []
    return [(path, f"{package}/{path.relative_to(root)}") for root in roots for path in root.rglob("*.py")]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"

"""The build id of the compiler: a digest over its sources and the versions of its dependencies.

Computed without importing the compiler.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SERVER: Final = "tensorkiln_server"
"""The package of the server, whose distribution may be absent."""
COMPILER: Final = ("dialect", "stablehlo", "passes")
PARTS: Final = ("torch-mlir", "llvmlite", "numpy", "ml_dtypes", "nvidia-nvjitlink")
"""Dependencies that determine the output. Includes the assembler, which may be absent, because it makes cubins."""

# A wheel has rewritten imports; undo them, so that its build id equals that of the repository.
_MOVED: Final = f"from {SERVER}.".encode()
_HERE: Final = b"from "


@dataclass(frozen=True, slots=True)
class Build:
    """`build_id` changes with any source file of the compiler and with the version of any dependency."""

    build_id: str
    versions: dict[str, str]


@cache
def build() -> Build:
    """The build of this installation."""
    versions = {name: _version(name) for name in PARTS}
    digest = sha256(repr(sorted(versions.items())).encode())
    for folder in (Path(__file__).parent, *_compiler()):
        for parts in sorted(_sources(str(folder))):
            with open(os.sep.join((str(folder), *parts)), "rb", buffering=0) as file:
                content = file.read().replace(_MOVED, _HERE)
            name = "/".join((folder.name, *parts))
            digest.update(name.encode() + b"\0" + sha256(content).digest())
    return Build(digest.hexdigest(), versions)


def _sources(folder: str) -> Iterator[tuple[str, ...]]:
    """The Python files below `folder`, each as the parts of its path from there.

    Every process computes the build before its first program, and `Path.rglob` with its paths takes twice as long.
    """
    for place, folders, files in os.walk(folder):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        above = tuple(place[len(folder) + 1 :].split(os.sep)) if place != folder else ()
        yield from ((*above, name) for name in files if name.endswith(".py"))


def _compiler() -> list[Path]:
    """The compiler's folders: inside the package of an installed server, beside it in the repository."""
    spec = find_spec(SERVER)
    roots = spec.submodule_search_locations or () if spec is not None else ()
    for folder in (place for root in map(Path, roots) for place in (root, root.parent)):
        found = [folder / name for name in COMPILER]
        if all(each.is_dir() for each in found):
            return found
    return []


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"

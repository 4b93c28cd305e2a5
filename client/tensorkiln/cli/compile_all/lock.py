"""The lock file: which program every graph came to for every target, so that the next run can be held to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ...buffers import SHA256_PATTERN
from ...errors import RequestError
from ...nodes.base import Record
from ...options import CompileOptions

_Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]


class Locked(Record):
    """A program: its action digest, the SHA-256 of what it does, the bytes of its artifacts, the compiler's build."""

    digest: _Sha256
    program: _Sha256
    bytes: int
    build_id: str


class Lock(Record):
    """Programs by graph and target, compiled with `options`."""

    version: Literal[1] = 1
    options: CompileOptions = CompileOptions()
    graphs: dict[str, dict[str, Locked]] = Field(default_factory=dict[str, dict[str, Locked]])

    def find(self, graph: str, target: str) -> Locked | None:
        """What was locked."""
        return self.graphs.get(graph, {}).get(target)

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The graphs and targets that are locked."""
        return frozenset((graph, target) for graph, targets in self.graphs.items() for target in targets)

    def to_json(self) -> str:
        """The file, the same for the same programs."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"


def read_lock(path: Path, options: CompileOptions) -> Lock:
    """The lock at `path`; an empty one where there is none, or when other options were asked for.

    RequestError when the file is no lock of this version.
    """
    try:
        found = Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Lock(options=options)
    except (OSError, ValidationError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise RequestError(f"{path} is no lock file that this version can read: {reason}.") from None
    return found if found.options == options else Lock(options=options)


def renewed(lock: Lock, made: Mapping[tuple[str, str], Locked | None]) -> Lock:
    """The lock after a run: `made` has what was asked for, None where nothing came of it, which keeps what was."""
    graphs: dict[str, dict[str, Locked]] = {}
    for (graph, target), program in made.items():
        entry = program or lock.find(graph, target)
        if entry is not None:
            graphs.setdefault(graph, {})[target] = entry
    return Lock(options=lock.options, graphs=graphs)

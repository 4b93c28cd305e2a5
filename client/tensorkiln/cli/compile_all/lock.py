"""The lock file: the program of every graph for every target, to check the next run against."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from ...buffers import SHA256_PATTERN
from ...errors import RequestError
from ...nodes.base import Record
from ...options import CompileOptions
from ...reasons import reason as reason_of

Entry = TypeVar("Entry")

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
        """The locked program, or None."""
        return self.graphs.get(graph, {}).get(target)

    def gone(self, graphs: Collection[str]) -> tuple[str, ...]:
        """The locked graphs that are not in `graphs`."""
        return tuple(sorted(self.graphs.keys() - set(graphs)))

    def to_json(self) -> str:
        """The text of the file; equal for equal programs."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"


def read_lock(path: Path) -> Lock | None:
    """Read the lock at `path`; None when there is none. RequestError when it is not a lock file of this version."""
    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = reason_of(error.errors()[0]) if isinstance(error, ValidationError) else str(error)
        raise RequestError(f"{path} is not a lock file that this version can read: {reason}.") from None


def other_options(lock: Lock | None, options: CompileOptions) -> tuple[str, ...]:
    """The options that differ from those of the lock, each with both values."""
    if lock is None:
        return ()
    before, now = lock.options.model_dump(), options.model_dump()
    changed = [name for name in now if before[name] != now[name]]
    return tuple(f"{name} is {_word(before[name])} there and {_word(now[name])} here" for name in changed)


def _word(value: bool) -> str:
    return "on" if value else "off"


def renewed(lock: Lock, graphs: Collection[str], made: Mapping[tuple[str, str], Locked]) -> Lock:
    """The lock after a run with the results `made`; `graphs` are all graphs of the folder.

    Other entries of these graphs are kept, so that runs for one target each can share a lock.
    """
    kept = {graph: targets for graph, targets in lock.graphs.items() if graph in graphs}
    return Lock(options=lock.options, graphs=with_made(kept, made))


def with_made(
    kept: Mapping[str, Mapping[str, Entry]], made: Mapping[tuple[str, str], Entry]
) -> dict[str, dict[str, Entry]]:
    """The `kept` entries by graph and target, updated with those `made`."""
    entries = {graph: dict(targets) for graph, targets in kept.items()}
    for (graph, target), entry in made.items():
        entries.setdefault(graph, {})[target] = entry
    return entries

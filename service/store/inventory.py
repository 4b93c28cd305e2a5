"""What a store holds, and which of its blobs each record needs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from tensorkiln.trust.record import Sha256

from .attempts import FOLDER as CRASHES
from .disk import Item
from .job_records import ENDED_FOLDER, OPEN_FOLDER, PROGRESS_FOLDER, programs_of
from .location import ObjectStore, explained
from .nearest import FOLDER as NEAREST
from .records import unsealed
from .repeats import stated

BLOBS: Final = "blobs/"
PROGRAMS: Final = "programs/"
REQUESTS: Final = "requests/"
RECORDS: Final = (PROGRAMS, REQUESTS, NEAREST)
HISTORY: Final = (CRASHES, ENDED_FOLDER)
"""Records of the past: they stay valid when their blobs are gone."""
QUARANTINE: Final = "quarantine/"
RIGHTS: Final = "access/"
"""Rights to read: a record for each owner and digest, removed with what it names; see `service.identity.tenancy`."""

_DIGEST: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class _Named(BaseModel):
    program: Sha256
    artifacts: tuple[Sha256, ...]
    stages: dict[str, Sha256]


@dataclass(frozen=True, slots=True)
class Inventory:
    """The blobs by digest, the records by path, and the blobs that each record needs.

    `others` are the blobs that other objects name, `answers` the programs of each repeated answer and ended job.
    """

    blobs: Mapping[str, Item] = field(default_factory=dict[str, Item])
    records: Mapping[str, Item] = field(default_factory=dict[str, Item])
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    others: frozenset[str] = frozenset()
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    rights: Mapping[str, Item] = field(default_factory=dict[str, Item])

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(item.size for items in (self.blobs, self.records, self.rights) for item in items.values())


async def take_inventory(store: ObjectStore) -> Inventory:
    """Everything in `store` at about this time. An unreadable record, or progress of an ended job, needs no blobs."""
    records: dict[str, Item] = {}
    needs: dict[str, tuple[str, ...]] = {}
    answers: dict[str, tuple[str, ...]] = {}
    rights: dict[str, Item] = {}
    others: set[str] = set()
    opened: set[str] = set()
    progress: list[tuple[Item, tuple[str, ...]]] = []
    async for item in items(store, ""):
        if item.path.startswith((BLOBS, QUARANTINE)):
            continue
        if item.path.startswith(RIGHTS):
            rights[item.path] = item  # its path says it all, and there are many
            continue
        content = await read(store, item.path) or b""
        if item.path.startswith((*RECORDS, *HISTORY)):
            records[item.path] = item
            record = unsealed(content)
            needs[item.path] = (needed_blobs(item.path, content, record) if record is not None else None) or ()
            if item.path.startswith(REQUESTS) and (said := stated(record)) is not None:
                answers[item.path] = said.programs
            elif item.path.startswith(ENDED_FOLDER):
                answers[item.path] = programs_of(record)
        elif item.path.startswith(PROGRESS_FOLDER):
            progress.append((item, _named_in(content)))
        else:
            others.update(_named_in(content))
            if item.path.startswith(OPEN_FOLDER):
                opened.add(item.path.removeprefix(OPEN_FOLDER))
    for item, named in progress:
        if item.path.removeprefix(PROGRESS_FOLDER) in opened:
            others.update(named)
        else:
            records[item.path], needs[item.path] = item, ()
    # Blobs after records: a blob that was put in between is new, and not evicted.
    blobs = {item.path.rpartition("/")[2]: item async for item in items(store, BLOBS)}
    return Inventory(blobs, records, needs, frozenset(others), answers, rights)


async def items(store: ObjectStore, prefix: str) -> AsyncGenerator[Item]:
    """The objects below `prefix`."""
    with explained("The store cannot be listed"):
        async for item in store.items(prefix):
            yield item


async def read(store: ObjectStore, path: str) -> bytes | None:
    with explained("The store cannot be read"):
        try:
            return await store.read(path)
        except FileNotFoundError:
            return None


async def contents(store: ObjectStore, prefix: str) -> AsyncGenerator[tuple[Item, bytes]]:
    """The objects below `prefix` with their bytes, except those that are removed meanwhile."""
    async for item in items(store, prefix):
        content = await read(store, item.path)
        if content is not None:
            yield item, content


def needed_blobs(path: str, content: bytes, record: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The digests of the blobs that the record at `path`, with these bytes, needs; None when it lacks its fields."""
    if path.startswith(NEAREST):
        return ()
    if path.startswith(HISTORY):
        return _named_in(content)
    if path.startswith(REQUESTS):
        said = stated(record)
        return (said.answer, *said.blobs) if said is not None else None
    try:
        named = _Named.model_validate(signed_record(record))
    except ValidationError:
        return None
    return (named.program, *named.artifacts, *named.stages.values())


def signed_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The signed content of the record of a program, not verified; empty when the record is malformed."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        signed = json.loads(record["signed"])["record"]
        if isinstance(signed, dict):
            return cast(Mapping[str, Any], signed)
    return {}


def _named_in(content: bytes) -> tuple[str, ...]:
    # Many jobs name the same blobs: each digest is in memory once.
    return tuple(sys.intern(digest.decode()) for digest in _DIGEST.findall(content))


def right_of(owner: str, digest: str) -> str:
    """The path of the right of `owner`, given by its folder, to read the blob or program with this digest."""
    return f"{RIGHTS}{owner}/{digest[:2]}/{digest}"


def target_of(path: str) -> str:
    """The digest of the target of the right at `path`: of a blob, or of an action."""
    return path.rpartition("/")[2]

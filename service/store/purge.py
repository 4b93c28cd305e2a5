"""Removing all that one build of the compiler made, for the day on which it turns out to have compiled wrongly."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from .inventory import BLOBS, PROGRAMS, REQUESTS, items, read
from .job_records import ENDED_FOLDER
from .location import ObjectStore
from .nearest import FOLDER as NEAREST
from .nearest import entries_of, forget
from .records import Records, unsealed

_ANSWERS: Final = (REQUESTS, ENDED_FOLDER)


@dataclass(frozen=True, slots=True)
class Purged:
    """How many programs of a build there were, and how many answers and ended jobs that have one."""

    programs: int
    answers: int
    jobs: int


async def purge(store: ObjectStore, build_id: str, *, dry_run: bool = False) -> Purged:
    """Remove the records of all programs of a build, believed or not, and those of all answers that state it.

    What blobs only they needed is for an eviction to remove. A `dry_run` only counts.
    """
    programs: list[str] = []
    made: set[str] = set()
    async for path, record in _records(store, PROGRAMS):
        signed = _signed(record)
        if signed.get("build_id") == build_id:
            programs.append(path)
            made.add(str(signed.get("program")))
    found: dict[str, list[str]] = {folder: [] for folder in _ANSWERS}
    for folder in _ANSWERS:
        async for path, record in _records(store, folder):
            # Of a program that was evicted, the answer alone says whose it was.
            if not made.isdisjoint(record.get("blobs", ())) or await _states(store, record.get("answer"), build_id):
                found[folder].append(path)
    if not dry_run:
        # What leads to a program goes before it.
        for path in (*found[REQUESTS], *found[ENDED_FOLDER]):
            await Records(store).delete(path)
        async for path, record in _records(store, NEAREST):
            gone = [each.digest for each in entries_of(record) if each.components.get("build_id") == build_id]
            if gone:
                await forget(Records(store), path, gone)
        for path in programs:
            await Records(store).delete(path)
    return Purged(len(programs), len(found[REQUESTS]), len(found[ENDED_FOLDER]))


async def _records(store: ObjectStore, folder: str) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """The records in a folder, by path, but for the damaged ones."""
    async for item in items(store, folder):
        record = unsealed(await read(store, item.path) or b"")
        if record is not None:
            yield item.path, record


def _signed(record: Mapping[str, Any]) -> Mapping[str, Any]:
    with suppress(ValueError, KeyError, TypeError):
        signed = json.loads(record["signed"])["record"]
        return cast(Mapping[str, Any], signed) if isinstance(signed, dict) else {}
    return {}


async def _states(store: ObjectStore, answer: str | None, build_id: str) -> bool:
    content = await read(store, f"{BLOBS}{answer[:2]}/{answer}") if answer else None
    return content is not None and build_id.encode() in content

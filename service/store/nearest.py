"""The index of stored programs that explains misses by the nearest one: two small records for each program.

One lists the programs of the same graph, one those for the same target and options. Each namespace has records of its
own. An entry is a hint: one whose program is gone is dropped, and one lost in a race only costs an explanation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from service.action import GRAPH, Action, differences
from service.process.periodic import Background
from tensorkiln.errors import UnavailableError
from tensorkiln.limits import SHA256_PATTERN

from .records import Records

FOLDER: Final = "nearest/"
MAX_OF_GRAPH: Final = 32
"""Programs of one graph that are remembered, the newest."""
MAX_OF_TARGET: Final = 8
"""Programs for one target with the same options that are remembered, the newest."""

# Entries of each record whose programs are looked up before the search ends.
_MAX_LOOKS: Final = 4

_log = structlog.get_logger()


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)

    digest: str = Field(pattern=SHA256_PATTERN)
    components: dict[str, Any]


_ENTRIES: Final = TypeAdapter(tuple[_Entry, ...])


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A program by its action digest, and the components that differ from those of an action, as `shown` has both."""

    digest: str
    differs: Mapping[str, tuple[Any, Any]]


def shown(action: Action) -> dict[str, Any]:
    """The components of `action`, with the SHA-256 of its salt instead of the salt."""
    return {**action.components, "salt": shown_salt(action.salt)}


def shown_salt(salt: str) -> str:
    """The SHA-256 of a salt; empty for no salt."""
    return sha256(salt.encode()).hexdigest() if salt else ""


class Nearest(Background):
    """The index in `records`. `is_there` says whether the program of an action digest is stored and believed."""

    def __init__(self, records: Records, is_there: Callable[[str], Awaitable[object]]) -> None:
        super().__init__()
        self._records = records
        self._is_there = is_there
        self._lock = asyncio.Lock()

    def add(self, action: Action, scope: str) -> None:
        """Add `action`, which is stored, in the background: its answer does not wait. A failure is only logged."""
        self.see_to(self._add_to_both(action, scope))

    async def _add_to_both(self, action: Action, scope: str) -> None:
        entry = _Entry(digest=action.digest, components=shown(action))
        of_graph, of_target = _paths(action, scope)
        try:
            await asyncio.gather(self._add(of_graph, entry, MAX_OF_GRAPH), self._add(of_target, entry, MAX_OF_TARGET))
        except UnavailableError as error:
            _log.warning("the index of misses was not updated", reason=error.message)

    async def to(self, action: Action, scope: str) -> Neighbour | None:
        """The stored program with the fewest components that differ: of the same graph, if there is one.

        If none differ, the program itself is missing or not trusted. None when nothing is near, or the store fails.
        """
        await self.settle()
        try:
            paths = _paths(action, scope)
            of_graph, of_target = await asyncio.gather(*map(self._entries, paths))
            found = await self._first(action, of_graph, paths[0])
            return found or await self._first(action, of_target, paths[1])
        except UnavailableError as error:
            _log.warning("the index of misses could not be read", reason=error.message)
            return None

    async def _first(self, action: Action, entries: Iterable[_Entry], path: str) -> Neighbour | None:
        mine = shown(action)
        near = [Neighbour(each.digest, differences(mine, each.components)) for each in entries]
        gone: list[str] = []
        found: Neighbour | None = None
        for each in sorted(near, key=lambda neighbour: len(neighbour.differs))[:_MAX_LOOKS]:
            if each.digest == action.digest or await self._is_there(each.digest):
                found = each
                break
            gone.append(each.digest)
        if gone:
            async with self._lock:
                await forget(self._records, path, gone)
        return found

    async def _add(self, path: str, entry: _Entry, most: int) -> None:
        async with self._lock:
            others = [each for each in await self._entries(path) if each.digest != entry.digest]
            await _put(self._records, path, [entry, *others][:most])

    async def _entries(self, path: str) -> tuple[_Entry, ...]:
        return entries_of(await self._records.get(path))


def entries_of(record: Mapping[str, Any] | None) -> tuple[_Entry, ...]:
    """The entries of a record of the index, the newest first; empty when this version did not write it."""
    try:
        return _ENTRIES.validate_python(record.get("entries")) if record is not None else ()
    except ValidationError:
        return ()


async def forget(records: Records, path: str, digests: Iterable[str]) -> None:
    """Drop the entries of these programs from the record at `path`, and the record once it is empty."""
    gone = set(digests)
    left = [entry for entry in entries_of(await records.get(path)) if entry.digest not in gone]
    if left:
        await _put(records, path, left)
    else:
        await records.delete(path)


async def _put(records: Records, path: str, entries: Iterable[_Entry]) -> None:
    await records.put(path, {"entries": _ENTRIES.dump_python(tuple(entries), mode="json")})


def _paths(action: Action, scope: str) -> tuple[str, str]:
    """The records with the programs of the same graph, and with those for the same target and options."""
    alike = {"options": action.options, "target": action.target}
    return _path(scope, GRAPH, action.graph), _path(scope, "target", alike)


def _path(scope: str, kind: str, of: object) -> str:
    name = sha256(json.dumps([scope, kind, of], sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return f"{FOLDER}{name[:2]}/{name}"

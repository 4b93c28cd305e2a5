"""The orders of a farm as the store has them. A message about one may be lost or come twice: this is what counts.

Each service of a farm, its owner, has a folder: `open` with what it wants done, `claims` with who has begun which
attempt (a file that only one worker can create), `state` with the signs of life of those that take long, and `done`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from service.store.inventory import items
from service.store.location import ObjectStore
from service.store.programs import Entry
from service.store.records import Records

_FARM: Final = "farm"
_MOST: Final = 100_000
SWEPT_AFTER_S: Final = 86_400.0
"""Seconds after which what a service left behind that is no more is removed."""


@dataclass(frozen=True, slots=True)
class Task:
    """An order: the components of its action, whose graph is a blob. `id` is unique, `owner` the service it is of.

    `deadline_s` is what one attempt of the compile may take.
    """

    owner: str
    id: str
    action: Mapping[str, Any]
    with_dumps: bool
    hook: str | None
    is_poison: bool
    replaces: bool
    deadline_s: float


@dataclass(frozen=True, slots=True)
class State:
    """A sign of life of a worker: `beat` differs from the one before. `news` are all of this attempt."""

    attempt: int
    beat: int
    news: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended: with a `problem` document, or with what is in `entry`. `run_s` are seconds of its compile,
    however it ended.

    `attempts` are those of the compile within it.
    """

    attempt: int
    worker: str
    news: Sequence[Mapping[str, Any]] = ()
    run_s: float = 0.0
    attempts: int = 1
    entry: Entry | None = None
    problem: Mapping[str, Any] | None = None


class Ledger:
    """The orders in a store. A task is named by its owner and its id."""

    def __init__(self, store: ObjectStore, records: Records) -> None:
        self._store = store
        self._records = records

    async def open(self, task: Task) -> None:
        """Have a task there is."""
        await self._records.put(_path("open", task.owner, task.id), asdict(task))

    async def find(self, owner: str, task: str) -> Task | None:
        """A task that is wanted still."""
        content = await self._records.get(_path("open", owner, task))
        return Task(**content) if content is not None else None

    async def close(self, owner: str, task: str, attempts: int) -> None:
        """A task is wanted no more; `attempts` were announced."""
        paths = [_path(what, owner, task) for what in ("open", "state", "done")]
        for path in (*paths, *(_path("claims", owner, f"{task}.{attempt + 1}") for attempt in range(attempts))):
            await self._records.delete(path)

    async def claim(self, owner: str, task: str, attempt: int, worker: str) -> bool:
        """Whether `worker` is the one that makes this attempt."""
        return await self._records.create(_path("claims", owner, f"{task}.{attempt}"), {"worker": worker})

    async def worker(self, owner: str, task: str, attempt: int) -> str:
        """Who makes this attempt; empty when nobody does."""
        content = await self._records.get(_path("claims", owner, f"{task}.{attempt}"))
        return content["worker"] if content is not None else ""

    async def claimed(self, owner: str) -> set[tuple[str, int]]:
        """The attempts that have been begun, of what is open."""
        names = await self._records.names(_path("claims", owner), _MOST)
        return {(task, int(attempt)) for task, _, attempt in (name.partition(".") for name in names)}

    async def beat(self, owner: str, task: str, state: State) -> None:
        """Say that an attempt is being made."""
        await self._records.put(_path("state", owner, task), asdict(state))

    async def state(self, owner: str, task: str) -> State | None:
        """The last sign of life; there is none of what is over soon."""
        content = await self._records.get(_path("state", owner, task))
        return State(**content) if content is not None else None

    async def finish(self, owner: str, task: str, result: Result) -> bool:
        """Say how a task has ended, unless that is known; whether it was not."""
        return await self._records.create(_path("done", owner, task), asdict(result))

    async def finished(self, owner: str) -> list[str]:
        """The tasks of which it is known how they have ended."""
        return await self._records.names(_path("done", owner), _MOST)

    async def result(self, owner: str, task: str) -> Result | None:
        """How a task has ended."""
        content = await self._records.get(_path("done", owner, task))
        if content is None:
            return None
        entry = content.pop("entry")
        return replace(Result(**content), entry=_entry(entry) if entry is not None else None)

    async def reopen(self, owner: str, task: str) -> None:
        """Forget how a task has ended: another attempt is to be made."""
        await self._records.delete(_path("done", owner, task))

    async def sweep(self, older_than_s: float = SWEPT_AFTER_S) -> None:
        """Remove what nobody has touched for so long."""
        before = time.time() - older_than_s
        async for item in items(self._store, f"{_FARM}/"):
            if item.used < before:
                await self._records.delete(item.path)


def _entry(content: Mapping[str, Any]) -> Entry:
    artifacts, stages, seconds = tuple(content["artifacts"]), content["stages"], content["seconds"]
    return Entry(content["program"], artifacts, stages, seconds, content["signature"])


def _path(what: str, owner: str, name: str = "") -> str:
    return f"{_FARM}/{owner}/{what}/{name}".removesuffix("/")

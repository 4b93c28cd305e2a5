"""The orders of a farm as the store has them. A message about one may be lost or come twice: this is what counts.

Each service of a farm, its owner, has a folder: `open` with what it wants done, `claims` with who has begun which
attempt (a file that only one worker can create), `state` with the signs of life of those that take long, and `done`.
What workers write is signed, and bound to the order as they have read it: a service believes what is about its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Final

from service.store.inventory import items
from service.store.location import ObjectStore
from service.store.programs import Entry
from service.store.records import Records
from tensorkiln.trust.encoding import canonical_json

from .statements import Kind, Statements

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

    @property
    def digest(self) -> str:
        """SHA-256 of all that was ordered: no two orders have the same."""
        return sha256(canonical_json(asdict(self))).hexdigest()


@dataclass(frozen=True, slots=True)
class State:
    """A sign of life of a worker: `beat` is above the one before. `news` are all of this attempt."""

    attempt: int
    worker: str
    beat: int
    news: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended: with a `problem` document, or with what is in `entry`. `run_s` are seconds of its compile,
    and `cpu_s` those of processors, however it ended.

    `attempts` are those of the compile within it.
    """

    attempt: int
    worker: str
    news: Sequence[Mapping[str, Any]] = ()
    run_s: float = 0.0
    cpu_s: float = 0.0
    attempts: int = 1
    entry: Entry | None = None
    problem: Mapping[str, Any] | None = None


class Ledger:
    """The orders in a store. A task is named by its owner and its id."""

    def __init__(self, store: ObjectStore, records: Records, statements: Statements) -> None:
        self._store = store
        self._records = records
        self._statements = statements

    async def open(self, task: Task) -> None:
        """Have a task there is, as it is here."""
        await self._records.put(_path("open", task.owner, task.id), asdict(task))

    async def find(self, owner: str, task: str) -> Task | None:
        """A task that is wanted still."""
        content = await self._records.get(_path("open", owner, task))
        with suppress(TypeError):
            found = Task(**content) if content is not None else None
            if found is not None and (found.owner, found.id) == (owner, task):
                return found
        return None

    async def close(self, owner: str, task: str, attempts: int) -> None:
        """A task is wanted no more; `attempts` were announced."""
        paths = [_path(what, owner, task) for what in ("open", "state", "done")]
        for path in (*paths, *(_path("claims", owner, f"{task}.{attempt + 1}") for attempt in range(attempts))):
            await self._records.delete(path)

    async def claim(self, task: Task, attempt: int, worker: str) -> bool:
        """Whether `worker` is the one that makes this attempt.

        The claim of somebody who is no worker keeps none from it. Two who meet one at once both begin: that ends once.
        """
        path = _claim(task, attempt)
        claim = self._statements.signed("claim", _about(task, attempt), {"worker": worker})
        if not await self._records.create(path, claim):
            if await self.worker(task, attempt):
                return False
            await self._records.put(path, claim)
        return True

    async def worker(self, task: Task, attempt: int) -> str:
        """Who makes this attempt; empty when nobody does."""
        content = await self._believed("claim", _about(task, attempt), _claim(task, attempt))
        return content["worker"] if content is not None else ""

    async def claimed(self, owner: str) -> set[tuple[str, str]]:
        """The tasks and numbers of attempts that somebody, worker or not, says to have begun."""
        names = await self._records.names(_path("claims", owner), _MOST)
        return {(task, attempt) for task, _, attempt in (name.partition(".") for name in names)}

    async def beat(self, task: Task, state: State) -> None:
        """Say that an attempt is being made."""
        path = _path("state", task.owner, task.id)
        await self._records.put(path, self._statements.signed("beat", _about(task), asdict(state)))

    async def withdraw(self, task: Task, attempt: int) -> None:
        """Take back what was said of an attempt that is given up: it may have been written after `close`."""
        for path in (_path("state", task.owner, task.id), _claim(task, attempt)):
            await self._records.delete(path)

    async def state(self, task: Task) -> State | None:
        """The last sign of life; there is none of what is over soon."""
        content = await self._believed("beat", _about(task), _path("state", task.owner, task.id))
        return State(**content) if content is not None else None

    async def finish(self, task: Task, result: Result) -> bool:
        """Say how a task has ended, unless that is known of this attempt or a later one; whether it was not."""
        path = _path("done", task.owner, task.id)
        done = self._statements.signed("result", _about(task), asdict(result))
        if not await self._records.create(path, done):
            earlier = await self.result(task)
            if earlier is not None and earlier.attempt >= result.attempt:
                return False
            await self._records.put(path, done)
        return True

    async def finished(self, owner: str) -> list[str]:
        """The tasks of which somebody, worker or not, says how they have ended."""
        return await self._records.names(_path("done", owner), _MOST)

    async def result(self, task: Task) -> Result | None:
        """How a task has ended."""
        content = await self._believed("result", _about(task), _path("done", task.owner, task.id))
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

    async def _believed(self, kind: Kind, about: Mapping[str, Any], path: str) -> dict[str, Any] | None:
        content = self._statements.believed(kind, about, path, await self._records.get(path))
        if content is not None:
            del content["at"]
        return content


def _about(task: Task, attempt: int | None = None) -> dict[str, Any]:
    """What is stated about is the whole order: one that somebody has changed is another."""
    return {"order": task.digest} if attempt is None else {"order": task.digest, "attempt": attempt}


def _claim(task: Task, attempt: int) -> str:
    return _path("claims", task.owner, f"{task.id}.{attempt}")


def _entry(content: Mapping[str, Any]) -> Entry:
    artifacts, stages, seconds = tuple(content["artifacts"]), content["stages"], content["seconds"]
    return Entry(content["program"], artifacts, stages, seconds, content["signature"])


def _path(what: str, owner: str, name: str = "") -> str:
    return f"{_FARM}/{owner}/{what}/{name}".removesuffix("/")

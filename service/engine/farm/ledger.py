"""The orders of a farm as the store has them.

`open` has what services want done, `claims` who is at it, with the signs of life of what takes long, and `done` how it
has ended. What workers write is signed, and bound to the attempt at the order as they have read it: a service believes
what is about its own, and nothing of an attempt that it gave up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from service import clock
from service.lease import LEASE_S
from service.store.claims import Claims
from service.store.leftovers import ORDERS_FOLDER
from service.store.records import Records
from tensorkiln.errors import InfrastructureError, error_from_problem
from tensorkiln.trust.encoding import canonical_json

from .statements import Statements, generation

Stated: TypeAlias = Literal["claim", "result"]

_FOLDERS: Final[Mapping[Stated, str]] = {"claim": "claims", "result": "done"}
_MOST: Final = 100_000


def new_id(owner: str) -> str:
    """An id for an order of the service `owner`. Those of orders that were given earlier come before it."""
    return f"{int(clock.time() * 1e9):016x}-{owner}-{clock.token_hex(8)}"


def is_of(owner: str, task: str) -> bool:
    """Whether an order is of the service `owner`, by its id."""
    return f"-{owner}-" in task


@dataclass(frozen=True, slots=True)
class Task:
    """An attempt at an order: the components of its action, whose graph is a blob. `id` is that of the order.

    `deadline_s` is what one attempt of the compile may take. `trace` is the trace context of whoever asked, as the
    header `traceparent`.
    """

    id: str
    attempt: int
    action: Mapping[str, Any]
    with_dumps: bool
    replaces: bool
    deadline_s: float
    trace: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of all that was ordered: no two attempts have the same."""
        # Not `asdict`, which copies the action.
        return sha256(canonical_json({each.name: getattr(self, each.name) for each in fields(self)})).hexdigest()


@dataclass(frozen=True, slots=True)
class State:
    """Who is at an attempt, and a sign of life: `beat` is above the one before. `news` are all of this attempt."""

    worker: str
    beat: int = 0
    news: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended: with a `problem` document, or with a program in the store. `run_s` are seconds of its
    compile, and `cpu_s` those of processors, however it ended.

    `attempts` are those of the compile within it.
    """

    worker: str
    news: Sequence[Mapping[str, Any]] = ()
    run_s: float = 0.0
    cpu_s: float = 0.0
    attempts: int = 1
    problem: Mapping[str, Any] | None = None

    @property
    def may_pass(self) -> bool:
        """Whether it is nothing of the order's own, and another attempt may come to something else."""
        return self.problem is not None and isinstance(error_from_problem(self.problem), InfrastructureError)


class Ledger:
    """The orders in a store, each named by its id: those of this generation of services and workers."""

    def __init__(self, records: Records, statements: Statements) -> None:
        self._records = records
        self._statements = statements
        self._claims = Claims(records)
        # When a claim was last believed.
        self._believed_at: dict[str, float] = {}

    async def open(self, task: Task) -> None:
        """Have a task there is, as it is here."""
        await self._records.put(_path("open", task.id), asdict(task))

    async def opened(self) -> list[str]:
        """The tasks that are wanted, those that were given first before others."""
        return await self._records.names(_path("open"), _MOST)

    async def find(self, task: str) -> Task | None:
        """A task that is wanted still."""
        content = await self._records.get(_path("open", task))
        # It is no order, or nothing can be stated about it.
        with suppress(TypeError, ValueError, RecursionError):
            found = Task(**content) if content is not None else None
            if found is not None and found.id == task and found.digest:
                return found
        return None

    async def close(self, task: str) -> None:
        """A task is wanted no more."""
        await self._records.delete(_path("open", task))
        await self.release(task)

    async def take(self, worker: str) -> Task | None:
        """A task that nobody is at, and `worker` is from now on; None when there is none.

        The claim of somebody who is no worker keeps none from it; who has claimed what is looked at once in a lease.
        """
        opened = await self.opened()
        claimed = set(await self.claimed()) if opened else set[str]()
        now = clock.monotonic()
        self._believed_at = {name: at for name, at in self._believed_at.items() if name in claimed}
        for name in opened:
            if name in claimed and now - self._believed_at.get(name, -math.inf) < LEASE_S:
                continue
            task = await self.find(name)
            if task is None:
                continue
            if name in claimed and await self.worker(task):
                self._believed_at[name] = now
            elif await self.claim(task, worker):
                return task
        return None

    async def claim(self, task: Task, worker: str) -> bool:
        """Whether `worker` is the one that is at this task, as nobody is who is believed."""

        async def stands(found: Mapping[str, Any]) -> bool:
            return self._believed("claim", task, found, at_any_time=True) is not None

        def mine() -> dict[str, Any]:
            return self._statements.signed("claim", _about(task), asdict(State(worker)))

        return await self._claims.take(_path("claims", task.id), mine, stands) is None

    async def worker(self, task: Task) -> str:
        """Who is at a task, or was when it was lost; empty when nobody is.

        A service finds that out, and where there is none, an order of its is not begun again and again.
        """
        content = await self._stated("claim", task, at_any_time=True)
        return content["worker"] if content is not None else ""

    async def claimed(self) -> list[str]:
        """The tasks that somebody, worker or not, says to be at."""
        return await self._records.names(_path("claims"), _MOST)

    async def release(self, task: str) -> None:
        """Have nobody be at a task, and forget what was said of it."""
        for what in ("done", "claims"):  # who is at it goes last: until then nobody else begins
            await self._records.delete(_path(what, task))

    async def beat(self, task: Task, state: State) -> None:
        """Say that an attempt is being made."""
        await self._put("claim", task, state)

    async def state(self, task: Task) -> State | None:
        """The last sign of life of who is at a task, unless that was long ago."""
        content = await self._stated("claim", task)
        return State(**content) if content is not None else None

    async def finish(self, task: Task, result: Result) -> None:
        """Say how an attempt has ended, whatever somebody else says there: that of another one is not believed."""
        await self._put("result", task, result)

    async def finished(self) -> list[str]:
        """The tasks of which somebody, worker or not, says how they have ended."""
        return await self._records.names(_path("done"), _MOST)

    async def result(self, task: Task) -> Result | None:
        """How a task has ended."""
        content = await self._stated("result", task)
        return Result(**content) if content is not None else None

    async def _put(self, kind: Stated, task: Task, stated: State | Result) -> None:
        signed = self._statements.signed(kind, _about(task), asdict(stated))
        await self._records.put(_path(_FOLDERS[kind], task.id), signed)

    async def _stated(self, kind: Stated, task: Task, *, at_any_time: bool = False) -> dict[str, Any] | None:
        record = await self._records.get(_path(_FOLDERS[kind], task.id))
        return self._believed(kind, task, record, at_any_time=at_any_time)

    def _believed(
        self, kind: Stated, task: Task, record: Mapping[str, Any] | None, *, at_any_time: bool
    ) -> dict[str, Any] | None:
        path = _path(_FOLDERS[kind], task.id)
        content = self._statements.believed(kind, _about(task), path, record, at_any_time=at_any_time)
        if content is not None:
            del content["at"]
        return content


def _about(task: Task) -> dict[str, Any]:
    """What is stated about is the whole order with its attempt: one that somebody has changed is another."""
    return {"order": task.digest}


def _path(what: str, name: str = "") -> str:
    return f"{ORDERS_FOLDER}{generation()}/{what}/{name}".removesuffix("/")

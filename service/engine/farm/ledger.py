"""The orders of a farm as the store has them.

`open` has the orders of services, `claims` the worker of each with its heartbeats, and `done` the results. Workers sign
what they write and bind it to the attempt that they have read. A service accepts statements about its own orders, and
none about an attempt that it gave up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from service import clock
from service.store.claims import LEASE_S, Claims
from service.store.evict import ORDERS_FOLDER
from service.store.records import Records
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.errors import InfrastructureError, error_from_problem
from tensorkiln.trust.encoding import canonical_json

Stated: TypeAlias = Literal["claim", "result"]

_FOLDERS: Final[Mapping[Stated, str]] = {"claim": "claims", "result": "done"}
_PROTOCOL: Final = 7
"""The version of what services and workers write for each other. Members with another version ignore it."""


def generation() -> str:
    """The compiler's build and the protocol: workers of another generation do not see its orders."""
    return f"{build().build_id[:16]}.{_PROTOCOL}"


def new_id(owner: str) -> str:
    """An id for an order of the service `owner`. Ids sort by the time of the order."""
    return f"{int(clock.time() * 1e9):016x}-{owner}-{clock.token_hex(8)}"


def is_of(owner: str, task: str) -> bool:
    return f"-{owner}-" in task


@dataclass(frozen=True, slots=True)
class Task:
    """An attempt at the order `id`: the components of its action, whose graph is a blob, and a `traceparent`."""

    id: str
    attempt: int
    action: Mapping[str, Any]
    with_dumps: bool
    replaces: bool
    deadline_s: float
    trace: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the order with its attempt: no two attempts have the same."""
        # Not `asdict`, which copies the action.
        return sha256(canonical_json({each.name: getattr(self, each.name) for each in fields(self)})).hexdigest()


@dataclass(frozen=True, slots=True)
class State:
    """The worker of an attempt, and its heartbeat: `beat` grows each time. `news` has every event of the attempt."""

    worker: str
    beat: int = 0
    news: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended: with a `problem` document, or with a program in the store.

    `run_s` is the time of the compile and `cpu_s` its processor time, both in seconds, even if it failed.
    """

    worker: str
    news: Sequence[Mapping[str, Any]] = ()
    run_s: float = 0.0
    cpu_s: float = 0.0
    problem: Mapping[str, Any] | None = None

    @property
    def may_pass(self) -> bool:
        """Whether the cause is the infrastructure, not the order, so that another attempt may succeed."""
        return self.problem is not None and isinstance(error_from_problem(self.problem), InfrastructureError)


class Ledger:
    """The orders in a store, by id: those of services and workers with this build and protocol."""

    def __init__(self, records: Records, notary: Notary) -> None:
        self._records = records
        self._notary = notary
        self._claims = Claims(records)
        # When a claim was last verified.
        self._believed_at: dict[str, float] = {}

    async def open(self, task: Task) -> None:
        """Write a task, in the place of an earlier attempt."""
        await self._records.put(_path("open", task.id), asdict(task))

    async def opened(self) -> list[str]:
        """The ids of the open tasks, the oldest first."""
        return await self._records.names(_path("open"))

    async def find(self, task: str) -> Task | None:
        content = await self._records.get(_path("open", task))
        # A file that is no order, or one without a digest, counts as absent.
        with suppress(TypeError, ValueError, RecursionError):
            found = Task(**content) if content is not None else None
            if found is not None and found.id == task and found.digest:
                return found
        return None

    async def close(self, task: str) -> None:
        """Remove a task, with its claim and result."""
        await self._records.delete(_path("open", task))
        await self.release(task)

    async def take(self, worker: str) -> Task | None:
        """Claim an open task for `worker`; None when every one has a worker.

        A claim without a trusted signature does not count. Each claim is verified once per lease.
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
        """Claim the task for `worker`; whether that succeeded. A file without a valid signature is not a claim."""

        async def stands(found: Mapping[str, Any]) -> bool:
            return self._notary.opened("claim", _place("claim", task), found, at_any_time=True) is not None

        mine = partial(self._sealed, "claim", task, State(worker))
        return await self._claims.take(_path("claims", task.id), mine, stands) is None

    async def worker(self, task: Task) -> str:
        """The worker that has claimed a task, alive or lost: only the owner of the order says which. Empty for none."""
        content = await self._stated("claim", task, at_any_time=True)
        return content["worker"] if content is not None else ""

    async def claimed(self) -> list[str]:
        """The tasks that have a claim, verified or not."""
        return await self._records.names(_path("claims"))

    async def release(self, task: str) -> None:
        """Remove the result and the claim of a task, so that a worker can take it again."""
        for what in ("done", "claims"):  # the claim goes last: until then no other worker begins
            await self._records.delete(_path(what, task))

    async def beat(self, task: Task, state: State) -> None:
        await self._put("claim", task, state)

    async def state(self, task: Task) -> State | None:
        """The last heartbeat of a task's worker; None if it is invalid or too old."""
        content = await self._stated("claim", task)
        return State(**content) if content is not None else None

    async def finish(self, task: Task, result: Result) -> None:
        """Write the result of an attempt, in place of any file there: one of another attempt is not valid."""
        await self._put("result", task, result)

    async def finished(self) -> list[str]:
        """The tasks that have a result, verified or not."""
        return await self._records.names(_path("done"))

    async def result(self, task: Task) -> Result | None:
        """The result of a task; None if it has no valid one."""
        content = await self._stated("result", task)
        return Result(**content) if content is not None else None

    async def _put(self, kind: Stated, task: Task, stated: State | Result) -> None:
        await self._records.put(_path(_FOLDERS[kind], task.id), self._sealed(kind, task, stated))

    def _sealed(self, kind: Stated, task: Task, stated: State | Result) -> dict[str, Any]:
        return self._notary.sealed(kind, _place(kind, task), asdict(stated))

    async def _stated(self, kind: Stated, task: Task, *, at_any_time: bool = False) -> dict[str, Any] | None:
        record = await self._records.get(_path(_FOLDERS[kind], task.id))
        content = self._notary.opened(kind, _place(kind, task), record, at_any_time=at_any_time)
        if content is not None:
            del content["at"]
        return content


def _place(kind: Stated, task: Task) -> str:
    """The place that a statement is sealed for: with the whole order and its attempt, which nobody can change then."""
    return f"{_path(_FOLDERS[kind], task.id)} {task.digest}"


def _path(what: str, name: str = "") -> str:
    return f"{ORDERS_FOLDER}{generation()}/{what}/{name}".removesuffix("/")

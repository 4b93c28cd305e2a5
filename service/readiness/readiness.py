"""Everything that has to work before compiles are sent here."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import Final

import structlog

from service import clock
from service.observe.instruments import READY
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.reply import CompileHeader, checked
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.evict import READINESS
from service.store.location import FullStoreError, ObjectStore
from service.store.records import Records
from tensorkiln.errors import TensorkilnError, UnavailableError

PATIENCE_S: Final = 4.0
"""Seconds after which a check counts as failed until it ends, so that readiness is answered in time."""

_log = structlog.get_logger()
LIMITS: Final = Limits(deadline_s=5.0, memory_mib=256, file_mib=1)
AT_START: Final = Limits(deadline_s=60.0, memory_mib=256, file_mib=1)
"""For the first check of a service, which is slow on a machine where much starts at once."""
CHECKS: Final = ("canary", "store", "disk", "queue")
EVERY_S: Final = 10.0
"""Least seconds between two checks of the compiler, or of the store."""
_START_S: Final = AT_START.deadline_s + 10.0
_MIB: Final = 1 << 20


class Failure(Exception):
    """Why a part fails: for everybody, and for the operator. `in_part`: the service may start nevertheless."""

    def __init__(self, summary: str, reason: str = "", *, in_part: bool = False) -> None:
        self.summary = summary
        self.reason = reason or summary
        self.in_part = in_part


@contextmanager
def failing(what: str) -> Generator[None]:
    """Raise an error of the block as a `Failure`: everybody sees its code, the operator its message."""
    try:
        yield
    except TensorkilnError as error:
        is_full = isinstance(error, FullStoreError)
        raise Failure(f"{what} ({error.code})", f"{what}: {error.message}", in_part=is_full) from None


class Check:
    """`look` raises a `Failure` when the part `name` fails; its outcome is valid for `good_for_s` seconds."""

    def __init__(self, name: str, look: Callable[[], Awaitable[None]], good_for_s: float = 0.0) -> None:
        self.name = name
        self._look = look
        self._good_for_s = good_for_s
        self._looking: asyncio.Task[Failure | None] | None = None
        self._begun_at = self._ended_at = float("-inf")

    async def failure(self, patience_s: float = PATIENCE_S) -> Failure | None:
        """Why the part fails; None when it works. A check that still runs after `patience_s` seconds fails."""
        looking = self._current()
        left = self._begun_at + patience_s - clock.monotonic()
        done, _ = await asyncio.wait({looking}, timeout=max(left, 0.0))
        if done:
            return looking.result()
        READY.labels(self.name).set(0)
        return Failure(f"there is no result after {patience_s:g} s")

    async def close(self) -> None:
        """Cancel a running check."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _current(self) -> asyncio.Task[Failure | None]:
        now = clock.monotonic()
        if self._looking is None or (self._looking.done() and now - self._ended_at >= self._good_for_s):
            self._begun_at = now
            self._looking = asyncio.create_task(self._verdict())
        return self._looking

    async def _verdict(self) -> Failure | None:
        failed: Failure | None = None
        try:
            await self._look()
        except Failure as failure:
            _log.error("a check of readiness failed", check=self.name, reason=failure.reason)
            failed = failure
        self._ended_at = clock.monotonic()
        READY.labels(self.name).set(failed is None)
        return failed


class Canary:
    """Compiles in `sandbox`, and compares the bytes of every compile with those of the first."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._first: tuple[str, ...] = ()

    async def look(self, limits: Limits = LIMITS) -> None:
        """Compile the graph. `Failure` when that fails."""
        with failing("a small graph is not compiled"):
            answer = await self._sandbox.run("trial", Message(), limits)
            artifacts = checked(CompileHeader, answer.header).artifacts
        given = {name: sha256(content).hexdigest() for name, content in answer.parts.items()}
        if not artifacts or any(given.get(f"artifact:{digest}") != digest for digest in artifacts):
            raise Failure("a compile returns bytes that do not match its digests")
        self._first = self._first or artifacts
        if artifacts != self._first:
            wrong = "a small graph is compiled to other bytes than before"
            raise Failure(wrong, f"{wrong}: {', '.join(artifacts)} in place of {', '.join(self._first)}")


async def _ping(sandbox: Sandbox, limits: Limits) -> None:
    with failing("no process is forked"):
        await sandbox.run("ping", Message(), limits)


class Readiness:
    """The checks `canary`, `store`, `disk` and `queue`; docs/observability.md describes them.

    `oldest_s` returns the longest wait of a compile. In a farm `lacks_workers` returns why no worker compiles, or "".
    """

    def __init__(
        self,
        reader: Sandbox,
        compiler: Sandbox | None,
        store: ObjectStore,
        settings: Settings,
        oldest_s: Callable[[], float],
        lacks_workers: Callable[[], str] | None,
    ) -> None:
        self._limits = AT_START
        looks = (*([] if compiler is None else [Canary(compiler).look]), partial(_ping, reader))

        async def forked() -> None:
            outcomes = await asyncio.gather(*(look(self._limits) for look in looks), return_exceptions=True)
            for error in filter(None, outcomes):
                raise error

        here = Check("canary", forked, EVERY_S)

        async def there() -> None:
            if (failure := await here.failure()) is not None:
                raise failure
            if lacks_workers is not None and (lack := lacks_workers()):
                raise Failure(lack)

        stored = Check("store", partial(look_at_store, Records(store)), EVERY_S)
        self._vital = (here, stored)
        canary = here if lacks_workers is None else Check("canary", there)
        disk = Check("disk", partial(_disk, store, settings.disk_floor_mib))
        queue = Check("queue", partial(_queue, oldest_s, settings.ready_queue_age_s))
        self._checks = (canary, stored, disk, queue)
        assert tuple(check.name for check in self._checks) == CHECKS

    async def require_start(self, *, is_private: bool) -> None:
        """Raise UnavailableError when the compiler or the store fails; a full store can be read, and does not.

        Of a private service only the store is checked: its caller waits for a compile, which shows as much.
        """
        for check in self._vital[is_private:]:
            failure = await check.failure(_START_S)
            if failure is not None and not failure.in_part:
                raise UnavailableError(f"The service cannot start, as the check {check.name} fails: {failure.reason}")
        self._limits = LIMITS

    async def require(self) -> None:
        """Run all checks; UnavailableError with those that fail in `details.failed`, by name."""
        failures = await asyncio.gather(*(check.failure() for check in self._checks))
        failed = {
            check.name: failure.summary
            for check, failure in zip(self._checks, failures, strict=True)
            if failure is not None
        }
        if failed:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            raise UnavailableError(f"The service is not ready: {reasons}.", details={"failed": failed})

    async def close(self) -> None:
        """Cancel all checks."""
        for check in {*self._vital, *self._checks}:
            await check.close()


async def look_at_store(records: Records) -> None:
    """Write, read and delete a record. `Failure` when the store does not accept it, or does not keep it."""
    # Random, so that services that share a store do not read each other's record.
    path, written = f"{READINESS}{clock.token_hex(8)}", {"value": clock.token_hex(16)}
    with failing("the store refuses writes"):
        await records.put(path, written)
        kept = await records.get(path) == written
        await records.delete(path)
    if not kept:
        raise Failure("the store loses writes")


async def _disk(store: ObjectStore, floor_mib: int) -> None:
    if store.root is None:
        return
    try:
        free = (await asyncio.to_thread(shutil.disk_usage, store.root)).free // _MIB
    except OSError as error:
        unseen = "the disk of the store cannot be seen"
        raise Failure(unseen, f"{unseen}: {error}") from None
    if free < floor_mib:
        raise Failure(f"{free} MiB are free on the disk of the store, and KILN_DISK_FLOOR_MIB is {floor_mib}")


async def _queue(oldest_s: Callable[[], float], bound_s: float) -> None:
    waited_s = oldest_s()
    if waited_s > bound_s:
        raise Failure(f"a compile has waited for {waited_s:.0f} s, and KILN_READY_QUEUE_AGE_S is {bound_s:g}")

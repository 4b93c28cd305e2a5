"""Everything that has to work before compiles are sent here."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from service import clock
from service.sandbox.sandbox import Sandbox
from service.store.leftovers import READINESS
from service.store.location import FullStoreError, ObjectStore, directory_of
from service.store.records import Records
from tensorkiln.errors import TensorkilnError, UnavailableError

from .check import AT_START, LIMITS, Canary, Check, Failure, Ping

CHECKS: Final = ("canary", "store", "disk", "queue")
EVERY_S: Final = 10.0
"""Least seconds between two checks of the compiler, or of the store."""
_START_S: Final = AT_START.deadline_s + 10.0
_PROOF_S: Final = 1.0
"""Seconds that the first check leaves the processors to a first compile, which proves as much."""
_MIB: Final = 1 << 20


class Readiness:
    """The checks `canary`, `store`, `disk` and `queue`.

    `disk_floor_mib` MiB have to be free on the disk of a store in a directory, and no compile may have waited longer
    than `queue_age_s` seconds; `oldest_s` returns the longest wait. The canary compiles a small graph in `compiler`,
    and forks a process in `reader`. In a farm `lacks_workers` returns why no worker can compile, or ""; the service
    starts nevertheless.
    """

    def __init__(
        self,
        reader: Sandbox,
        compiler: Sandbox | None,
        store: ObjectStore,
        records: Records,
        *,
        disk_floor_mib: int,
        queue_age_s: float,
        oldest_s: Callable[[], float],
        lacks_workers: Callable[[], str] | None,
    ) -> None:
        async def disk() -> Failure | None:
            return await _disk(store, disk_floor_mib)

        async def queue() -> Failure | None:
            return _queue(oldest_s(), queue_age_s)

        self._limits = AT_START
        self._starting: asyncio.Task[None] | None = None
        self._wanted, self._proven = asyncio.Event(), asyncio.Event()
        looks = (*([] if compiler is None else [Canary(compiler)]), Ping(reader))

        async def forked() -> Failure | None:
            failures = await asyncio.gather(*(each.look(self._limits) for each in looks))
            return next(filter(None, failures), None)

        here = Check("canary", forked, EVERY_S)

        async def there() -> Failure | None:
            lack = lacks_workers() if lacks_workers is not None else ""
            return await here.failure() or (Failure(lack, lack) if lack else None)

        stored = Check("store", StoreLook(records).look, EVERY_S)
        self._vital, self._stored = (here, stored), stored
        canary = here if lacks_workers is None else Check("canary", there)
        self._checks = (canary, stored, Check("disk", disk), Check("queue", queue))
        assert tuple(check.name for check in self._checks) == CHECKS

    def begin(self, *, gives_way: bool = False) -> None:
        """Start the first check; there is a `verdict` from now on.

        With `gives_way` the canary runs after _PROOF_S seconds, or when `started` is called, and not at all after
        `prove`.
        """
        start = self._require_unless_proven() if gives_way else self._require_start(*self._vital)
        self._starting = asyncio.create_task(start)

    def prove(self) -> None:
        """Record that a compile succeeded, which replaces the canary: the verdict then needs only the store."""
        self._proven.set()
        self._wanted.set()

    @property
    def verdict(self) -> asyncio.Future[None]:
        """The result of the first check: UnavailableError when the compiler or the store fails.

        A full store does not fail it, because it can be read; the service is not ready then. It takes a little longer
        than the canary may.
        """
        assert self._starting is not None
        return self._starting

    async def started(self) -> None:
        """Wait for the verdict; cancelling one caller does not cancel the check."""
        self._wanted.set()
        await asyncio.shield(self.verdict)

    async def _require_unless_proven(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROOF_S):
                await self._wanted.wait()
        if not self._proven.is_set():
            looking = asyncio.create_task(self._require_start(*self._vital))
            proof = asyncio.create_task(self._proven.wait())
            try:
                await asyncio.wait({looking, proof}, return_when=asyncio.FIRST_COMPLETED)
                if looking.done():
                    return looking.result()
            finally:
                looking.cancel()
                proof.cancel()
        await self._require_start(self._stored)

    async def _require_start(self, *checks: Check) -> None:
        for check in checks:
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
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        for check in {*self._vital, *self._checks}:
            await check.close()


class StoreLook:
    """Checks that the store accepts what is written, and keeps it."""

    def __init__(self, records: Records) -> None:
        self._records = records
        # Random, so that services that share a store do not read each other's record.
        self._path = f"{READINESS}{clock.token_hex(8)}"

    async def look(self) -> Failure | None:
        """Write, read and delete a record; return why that fails, or None."""
        written = {"value": clock.token_hex(16)}
        try:
            await self._records.put(self._path, written)
            kept = await self._records.get(self._path) == written
            await self._records.delete(self._path)
        except TensorkilnError as error:
            is_full = isinstance(error, FullStoreError)
            return Failure.of("the store refuses writes", error, in_part=is_full)
        lost = "the store loses writes"
        return None if kept else Failure(lost, lost)


async def _disk(store: ObjectStore, floor_mib: int) -> Failure | None:
    root = directory_of(store)
    if root is None:
        return None
    try:
        free = (await asyncio.to_thread(shutil.disk_usage, root)).free // _MIB
    except OSError as error:
        return Failure("the disk of the store cannot be seen", f"the disk of the store cannot be seen: {error}")
    if free >= floor_mib:
        return None
    low = f"{free} MiB are free on the disk of the store, and KILN_DISK_FLOOR_MIB is {floor_mib}"
    return Failure(low, low)


def _queue(oldest_s: float, bound_s: float) -> Failure | None:
    if oldest_s <= bound_s:
        return None
    late = f"a compile has waited for {oldest_s:.0f} s, and KILN_READY_QUEUE_AGE_S is {bound_s:g}"
    return Failure(late, late)

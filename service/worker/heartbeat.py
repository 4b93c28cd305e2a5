"""Heartbeats of a worker, by which services see that it is alive and compiles."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import structlog

from service import clock
from service.engine.farm.roster import Role, Roster
from service.lease import BEAT_S, LEASE_S
from service.readiness.readiness import Canary, Check
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import UnavailableError

TRY_EVERY_S: Final = 6.0
"""Seconds between canaries. With the timeout of a check and the look of a service, defects are seen within 15 s."""
_AGAIN_S: Final = 1.0
"""Seconds until a canary that failed is tried again."""

_log = structlog.get_logger()


class Heartbeat:
    """Writes heartbeats to `roster` as `name`, and compiles the canary in `sandbox` periodically, when it has a place.

    `places` is how many orders the worker does at a time. It `is_fit` if the last canary was compiled; otherwise it
    starts no orders.
    """

    def __init__(self, sandbox: Sandbox, roster: Roster, name: str, places: int) -> None:
        self._roster = roster
        self._name = name
        self._places = places
        self._busy = 0
        self._registered_at = float("-inf")
        self._canary = Check("canary", Canary(sandbox).look)
        self._role: Role | None = None
        self._running: list[asyncio.Task[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._changed = asyncio.Event()
        self.is_fit = True

    async def start(self) -> None:
        await self._try()
        self._running = [asyncio.create_task(each) for each in (self._register(), self._try_again())]

    async def close(self) -> None:
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._canary.close()
        role, self._role = self._role, None
        if role is not None:
            with suppress(UnavailableError):  # the lease ends anyway
                await self._roster.deregister(role, self._name)

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Hold a place for an order inside the block. No canary starts while orders hold all places."""
        self._busy += 1
        if self._busy >= self._places:
            self._idle.clear()
        try:
            yield
        finally:
            self._busy -= 1
            self._idle.set()

    def is_ready(self) -> bool:
        """Whether it has sent a heartbeat as a fit worker within a lease."""
        return self._role == "worker" and clock.monotonic() - self._registered_at < LEASE_S

    async def _try_again(self) -> None:
        while True:
            await asyncio.sleep(TRY_EVERY_S if self.is_fit else _AGAIN_S)
            await self._idle.wait()
            await self._try()

    async def _try(self) -> None:
        (failure,) = await asyncio.gather(self._canary.failure(), return_exceptions=True)
        if isinstance(failure, BaseException):
            _log.error("the canary failed because of a defect of the worker", exc_info=failure)
        is_fit = failure is None
        if is_fit != self.is_fit:
            if not is_fit:
                _log.error("the worker cannot compile; it takes no orders until it can")
            self.is_fit = is_fit
            self._changed.set()

    async def _register(self) -> None:
        while True:
            self._changed.clear()
            role: Role = "worker" if self.is_fit else "unfit"
            try:
                await self._roster.register(role, self._name, self._places)
                self._role, self._registered_at = role, clock.monotonic()
            except UnavailableError as error:
                _log.error("a heartbeat could not be written", reason=error.message)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), BEAT_S)

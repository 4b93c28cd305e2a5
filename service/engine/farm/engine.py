"""The engine that is a farm: workers take orders from the store, and what becomes of them is read there."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from service import clock
from service.engine.order import Made, OnProgress, Order, Wanted
from service.lease import BEAT_S
from service.observe.traces import traceparent
from service.process.periodic import periodically
from service.store.blobs import Blobs
from service.store.programs import Entry, Miss, Programs
from tensorkiln.errors import UnavailableError, UntrustedArtifactError, error_from_problem

from .ledger import Ledger, Result, Task, is_of, new_id
from .pending import Pending
from .reaper import Reaper
from .roster import Roster

LOOK_EVERY_S: Final = {True: 0.02, False: 0.25}
"""How often is looked for orders and results, where the store is a directory, and where it is not.

A directory is listed in a tenth of a millisecond, a bucket in tens of them.
"""
_WATCH_EVERY_S: Final = 0.25
_RESTORE_EVERY_S: Final = 1.0
_PAUSE_S: Final = 1.0
# A key that a worker has just made is seen a second later, where the directory is the same.
_KEY_PATIENCE_S: Final = 3.0

_log = structlog.get_logger()


class FarmEngine:
    """Keeps orders in `ledger`; the results are in `programs` and `blobs`, and the workers in `roster`.

    `deadline_s` is what one attempt of a compile may take, `is_near` whether the store is a directory.
    """

    def __init__(
        self, ledger: Ledger, roster: Roster, programs: Programs, blobs: Blobs, *, deadline_s: float, is_near: bool
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._programs = programs
        self._deadline_s = deadline_s
        self._look_every_s = LOOK_EVERY_S[is_near]
        self._owner = clock.token_hex(8)
        self._pending: dict[str, Pending] = {}
        self._reaper = Reaper(ledger, roster, blobs, self._pending)
        self._is_busy = asyncio.Event()
        self._is_registered = False
        self._check_at = self._restore_at = 0.0
        self._watching: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch."""
        loops = (
            ("watch its orders", self._look_every_s, self._watch),
            ("read the heartbeats of the farm", BEAT_S, self._update_roster),
        )
        self._watching = [asyncio.create_task(periodically(*each, at_once=True)) for each in loops]

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        """As the protocol has it. Attempts whose worker was lost are made again before this ends.

        A worker sees within half a second that the order at which it is was taken back.
        """
        wanted = order.wanted
        task = Task(
            id=new_id(self._owner),
            attempt=1,
            action=wanted.action.components,
            with_dumps=wanted.with_dumps,
            replaces=order.replaces,
            deadline_s=self._deadline_s,
            trace=traceparent(),
        )
        pending = self._pending[task.id] = Pending(order, task, on_progress)
        try:
            await self._reaper.offer(pending)
            self._is_busy.set()
            result = await pending.result
            pending.charge(result)
            return await self._outcome(order, result, pending.task.attempt)
        finally:
            await asyncio.shield(self._forget(pending))

    async def _outcome(self, order: Order, result: Result, attempt: int) -> Made:
        """What the result of this attempt says, or the error that it is.

        UnavailableError when what was made is gone. UntrustedArtifactError when the farm's settings keep it from being
        believed.
        """
        gone = UnavailableError("The program that the farm compiled is not in the store; send the request again.")
        error = gone if result.problem is None else error_from_problem(result.problem)
        # Of an order that was given up, what a worker said may be lost, or not believed, and not what it made.
        if error is not gone and (result.worker or order.replaces):
            raise error
        found = await self._find(order.wanted)
        if isinstance(found, Miss):
            raise error
        entry, program = found
        return Made(program, entry, None, attempt + result.attempts - 1)

    async def _find(self, wanted: Wanted) -> tuple[Entry, bytes] | Miss:
        until = clock.monotonic() + _KEY_PATIENCE_S
        while True:
            found = await self._programs.load(wanted.action, with_dumps=wanted.with_dumps)
            doubt = await self._programs.doubt(wanted.action) if isinstance(found, Miss) else None
            if doubt is None:
                return found
            if doubt.details["reason"] != "unknown_key" or clock.monotonic() > until:
                raise _unlike(doubt)
            await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        """Stop watching. Workers go on: what they make is found in the store."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    async def _forget(self, pending: Pending) -> None:
        """Nobody waits for an order any more. What the store does not remove now is swept one day."""
        del self._pending[pending.task.id]
        if not self._pending:
            self._is_busy.clear()
        if pending.result.cancelled() or not pending.result.done():
            pending.order.cost.lose(pending.run_s)
        pending.abandon()
        try:
            await self._ledger.close(pending.task.id)
        except UnavailableError as error:
            _log.warning("a finished order could not be deleted", reason=error.message)

    async def _watch(self) -> None:
        """See what has ended, what goes on, and what has to be offered again."""
        await self._is_busy.wait()
        await self._collect()
        now = clock.monotonic()
        if now >= self._check_at:
            await self._reaper.check()
            self._check_at = now + _WATCH_EVERY_S
        if now >= self._restore_at:
            await self._reaper.restore()
            self._restore_at = now + _RESTORE_EVERY_S

    async def _collect(self) -> None:
        for identifier in await self._ledger.finished():
            if not is_of(self._owner, identifier):
                continue
            pending = self._pending.get(identifier)
            if pending is None:
                # Of a worker that did not see in time that the order was taken back.
                await self._ledger.close(identifier)
                continue
            result = await self._ledger.result(pending.task) if not pending.result.done() else None
            if result is None:
                continue
            pending.report(result.news)
            if result.may_pass:
                await self._reaper.retry(pending, result)
            else:
                pending.finish(result)

    async def _update_roster(self) -> None:
        """See who is there, and be seen by the other services while the farm has orders of this one."""
        if self._pending:
            await self._roster.register("service", self._owner)
        elif self._is_registered:
            await self._roster.deregister("service", self._owner)
        self._is_registered = bool(self._pending)
        await self._roster.refresh()


def _unlike(doubt: UntrustedArtifactError) -> UntrustedArtifactError:
    """The end of an order that the same workers would only make again, to be believed no more than now."""
    setting = "KILN_REQUIRE_ISOLATION" if doubt.details["reason"] == "isolation" else "KILN_KEYS"
    return UntrustedArtifactError(
        f"{doubt.message} Services and workers of a farm need the same {setting}.", details=doubt.details
    )

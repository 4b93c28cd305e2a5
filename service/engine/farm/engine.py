"""The engine that is a farm: its workers take orders from a queue, and what becomes of them is read in the store."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from secrets import token_hex
from typing import Final

import structlog

from service.engine.order import Made, Order
from service.engine.protocol import Tell
from service.observe.traces import traceparent
from service.process.periodic import periodically
from service.store.blobs import Blobs
from service.store.programs import Programs
from tensorkiln.errors import (
    InfrastructureError,
    TensorkilnError,
    UnavailableError,
    error_from_problem,
)

from .broker import Broker
from .ledger import Ledger, Result, Task
from .message import MAX_ATTEMPTS, Message
from .outcome import Outcome
from .pending import Pending
from .reaper import Reaper
from .roster import SIGN_S, Roster

# A directory is listed in a tenth of a millisecond, a bucket in tens of them.
_LOOK_EVERY_S: Final = {True: 0.02, False: 0.25}
_WATCH_EVERY_S: Final = 0.25
_REAP_EVERY_S: Final = 1.0
_SWEEP_EVERY_S: Final = 3600.0

_log = structlog.get_logger()


class CeleryEngine:
    """Announces orders by `broker` and keeps them in `ledger`; the results are in `programs` and `blobs`.

    `deadline_s` is what one attempt of a compile may take, `ahead` how many orders all services announce for each
    process of the workers in `roster`, `is_near` whether the store is a directory.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        broker: Broker,
        programs: Programs,
        blobs: Blobs,
        *,
        deadline_s: float,
        ahead: float,
        is_near: bool,
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._broker = broker
        self._outcome = Outcome(programs, blobs)
        self._blobs = blobs
        self._deadline_s = deadline_s
        self._ahead = ahead
        self._look_every_s = _LOOK_EVERY_S[is_near]
        self._owner = token_hex(16)
        self._pending: dict[str, Pending] = {}
        self._reaper = Reaper(ledger, roster, broker, blobs, self._owner, self._pending)
        self._is_busy = asyncio.Event()
        self._has_signed = False
        self._look_at = self._reap_at = 0.0
        self._watching: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch. The broker need not be there yet: what is stored can be served without it."""
        rounds = (
            ("see what becomes of its orders", self._look_every_s, self._watch),
            ("see who is there", SIGN_S, self._attend),
            ("remove what services left behind", _SWEEP_EVERY_S, self._sweep),
        )
        self._watching = [asyncio.create_task(periodically(*each, at_once=True)) for each in rounds]
        with suppress(UnavailableError):
            await self._broker.check()

    async def check(self) -> None:
        """As the protocol has it."""
        await self._broker.check()

    def lacks_workers(self) -> str:
        """As the protocol has it, by what the processes of the workers say of themselves."""
        return self._roster.lacks_workers()

    def width(self, most: int) -> int:
        """As the protocol has it: what the workers that live can soon do."""
        return self._roster.width(most, self._ahead)

    async def submit(self, order: Order, tell: Tell) -> str:
        """Write the order down, then announce it. What cannot be announced is taken back."""
        wanted = order.wanted
        identifier = token_hex(16)
        deadline_s = self._deadline_s
        task = Task(
            owner=self._owner,
            id=identifier,
            action=wanted.action.components,
            with_dumps=wanted.with_dumps,
            hook=wanted.hook,
            is_poison=wanted.is_poison,
            replaces=order.replaces,
            deadline_s=deadline_s,
        )
        await self._broker.check()
        await self._blobs.put(wanted.graph)
        message = Message(self._owner, identifier, 1, wanted.action.digest, deadline_s, traceparent())
        self._pending[identifier] = Pending(order, task, message, tell)
        try:
            await self._ledger.open(task)
            await self._broker.send(message)
        except BaseException:
            await asyncio.shield(self.cancel(identifier))
            raise
        self._is_busy.set()
        return identifier

    async def wait(self, ticket: str) -> Made:
        """As the protocol has it. Attempts whose worker was lost are made again before this ends."""
        pending = self._pending[ticket]
        result = await pending.result
        pending.charge(result)
        try:
            return await self._outcome.of(pending.order, result, pending.message.attempt)
        finally:
            await self.cancel(ticket)

    async def cancel(self, ticket: str) -> None:
        """Take the order back; the worker that is at it sees that within half a second.

        A store that does not forget it now takes nothing from how it ended: what is left is swept one day.
        """
        try:
            await self._forget(ticket)
        except UnavailableError as error:
            _log.warning("an order that is over could not be removed", reason=error.message)

    async def close(self) -> None:
        """Stop watching. Workers go on: what they make is found in the store."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._broker.close()

    async def _forget(self, ticket: str) -> None:
        pending = self._pending.pop(ticket, None)
        if not self._pending:
            self._is_busy.clear()
        if pending is not None:
            if pending.result.cancelled() or not pending.result.done():
                pending.order.cost.lose(pending.claimed_s())
            pending.forget()
            await self._ledger.close(self._owner, ticket, pending.message.attempt)

    async def _watch(self) -> None:
        """See what has ended, what goes on, and what has to be announced again."""
        await self._is_busy.wait()
        await self._collect()
        now = time.monotonic()
        if now >= self._look_at:
            await self._reaper.look()
            self._look_at = now + _WATCH_EVERY_S
        if now >= self._reap_at:
            await self._reaper.reap()
            self._reap_at = now + _REAP_EVERY_S

    async def _collect(self) -> None:
        for identifier in await self._ledger.finished(self._owner):
            pending = self._pending.get(identifier)
            if pending is None:
                # Of a worker that did not see in time that the order was taken back.
                await self._ledger.close(self._owner, identifier, MAX_ATTEMPTS)
                continue
            result = await self._ledger.result(pending.task) if not pending.result.done() else None
            if result is None:
                continue
            may_pass = _may_pass(result)
            if may_pass and result.attempt <= pending.passed:
                continue  # somebody has put there again what was removed
            pending.hear(result.news)
            if may_pass:
                pending.passed = result.attempt
                await self._ledger.reopen(self._owner, identifier)
                if await self._reaper.again(pending, result):
                    continue
            pending.settle(result)

    async def _attend(self) -> None:
        """See who is there, and be seen by the other services while the farm has orders of this one."""
        if self._pending:
            await self._roster.sign("service", self._owner)
        elif self._has_signed:
            await self._roster.leave("service", self._owner)
        self._has_signed = bool(self._pending)
        await self._roster.look()

    async def _sweep(self) -> None:
        await self._ledger.sweep()
        await self._roster.sweep()


def _may_pass(result: Result) -> bool:
    error: TensorkilnError | None = error_from_problem(result.problem) if result.problem is not None else None
    return isinstance(error, InfrastructureError)

"""Announces again what was lost: a message that never came, or a worker that went.

Every service reaps its own orders, so that none has to lead; orders of a service that is gone are made again by the
one that takes up its jobs. An order that is announced twice is begun once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import structlog

from service.store.blobs import Blobs
from tensorkiln.errors import LostWorkerError, UnavailableError

from .broker import Broker
from .ledger import Ledger, Result
from .message import MAX_ATTEMPTS
from .pending import LEASE_S, Pending
from .roster import Roster

# A message that was overtaken by one that was sent so much later is not waiting for its turn.
_OVERTAKEN_S: Final = 1.0

_log = structlog.get_logger()


class Reaper:
    """Looks after the orders of `owner` in `pending`, by task."""

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        broker: Broker,
        blobs: Blobs,
        owner: str,
        pending: Mapping[str, Pending],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._broker = broker
        self._blobs = blobs
        self._owner = owner
        self._pending = pending
        self._newest_claimed = float("-inf")

    async def look(self) -> None:
        """See which orders have been begun, and which of those are worked on still."""
        claimed = await self._ledger.claimed(self._owner)
        for identifier, pending in tuple(self._pending.items()):
            attempt = pending.message.attempt
            if (identifier, str(attempt)) not in claimed:
                continue
            state = await self._ledger.state(pending.task)
            if not pending.is_claimed:
                # A sign of life says who began, too: somebody may have put another claim in the place of the worker's.
                is_at_it = state is not None and state.attempt == attempt
                if not is_at_it and not await self._ledger.worker(pending.task, attempt):
                    continue
                self._newest_claimed = max(self._newest_claimed, pending.sent_at)
                pending.claim()
            if state is not None:
                pending.see(state)

    async def reap(self) -> None:
        """Announce what is due. A broker that does not answer is asked again the next time."""
        now = time.monotonic()
        silent = [each for each in self._pending.values() if now - each.seen_at > LEASE_S and not each.result.done()]
        lost = [each for each in silent if each.is_claimed]
        unclaimed = [each for each in silent if not each.is_claimed]
        overtaken = [each for each in unclaimed if each.sent_at + _OVERTAKEN_S < self._newest_claimed]
        if not silent:
            return
        try:
            await self._broker.check()
            for pending in lost:
                await self._say_lost(pending)
                if not await self.again(pending):
                    pending.order.cost.lose(pending.claimed_s())
                    pending.settle(_given_up(pending))
            if unclaimed and (overtaken or await self._broker.waiting() == 0):
                for pending in overtaken or unclaimed:
                    await self._send_again(pending)
        except UnavailableError:
            return

    async def _send_again(self, pending: Pending) -> None:
        """Announce an attempt that nobody has begun though its message is not in the queue any more."""
        # Workers that say themselves that they do not compile hold what they took, and begin it when they do.
        is_vain = bool(self._roster.count("worker") or not self._roster.count("unfit"))
        if is_vain and pending.vain + 1 >= MAX_ATTEMPTS:
            _log.error("an order is taken again and again and never begun", digest=pending.message.action)
            pending.settle(_never_begun(pending))
            return
        _log.warning("a message was lost and is sent again", digest=pending.message.action)
        await self._announce(pending)
        pending.sent_at = pending.seen_at = time.monotonic()
        pending.vain += is_vain

    async def _announce(self, pending: Pending) -> None:
        """Send a message about an order that is in the store as it was given, whatever has become of it meanwhile."""
        await self._blobs.put(pending.order.wanted.graph)
        await self._ledger.open(pending.task)
        if pending.result.done():  # nobody waits for it since
            await self._ledger.close(pending.task.owner, pending.task.id, pending.message.attempt)
        else:
            await self._broker.send(pending.message)

    async def _say_lost(self, pending: Pending) -> None:
        message = pending.message
        worker = await self._ledger.worker(pending.task, message.attempt)
        _log.warning("a worker was lost", worker=worker, attempt=message.attempt, digest=message.action)

    async def again(self, pending: Pending, result: Result | None = None) -> bool:
        """Announce another attempt; False when there were enough. UnavailableError leaves it for later.

        `result` is what the present one came to, which was not lost then.
        """
        if pending.result.done():
            return True  # nobody waits for it since, and what it took is paid for
        if pending.message.attempt >= MAX_ATTEMPTS:
            return False
        await self._broker.check()
        if pending.result.done():
            return True
        pending.next_attempt(result)
        await self._announce(pending)
        return True


def _given_up(pending: Pending) -> Result:
    error = LostWorkerError(
        f"{MAX_ATTEMPTS} workers were lost over this compile; it is not begun again.",
        details={"attempts": MAX_ATTEMPTS},
    )
    return Result(pending.message.attempt, "", problem=error.to_problem())


def _never_begun(pending: Pending) -> Result:
    error = LostWorkerError(
        f"The farm was sent this compile {MAX_ATTEMPTS} times; each time the message was taken from the queue, and no "
        "worker began. The workers' logs say why: they may not reach the store that this service has, or not have the "
        "keys that it trusts.",
        details={"attempts": MAX_ATTEMPTS},
    )
    return Result(pending.message.attempt, "", problem=error.to_problem())

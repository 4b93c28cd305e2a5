"""Checks the workers of a service's orders, and offers an order again when its worker was lost.

Every service reaps its own orders, so there is no leader. If a service is lost, the service that takes over its jobs
makes new orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import structlog

from service import clock
from service.lease import LEASE_S
from service.store.blobs import Blobs
from tensorkiln.errors import LostWorkerError

from .ledger import Ledger, Result
from .pending import MAX_ATTEMPTS, Pending
from .roster import Roster

_log = structlog.get_logger()


class Reaper:
    """Looks after the orders in `pending`, by id."""

    def __init__(self, ledger: Ledger, roster: Roster, blobs: Blobs, pending: Mapping[str, Pending]) -> None:
        self._ledger = ledger
        self._roster = roster
        self._blobs = blobs
        self._pending = pending
        self._checked_at = clock.monotonic()

    async def check(self) -> None:
        """Read the claims, and retry orders whose worker was lost. UnavailableError when the store cannot be read."""
        claimed = set(await self._ledger.claimed())
        # Workers go on while the store is down, and are not lost because their heartbeats could not be read.
        if clock.monotonic() - self._checked_at > LEASE_S:
            for pending in self._pending.values():
                pending.renew_lease()
        for identifier, pending in tuple(self._pending.items()):
            if pending.result.done():
                continue
            if identifier in claimed:
                await self._read_claim(pending)
            elif pending.worker:
                await self.retry(pending)  # its worker gave it back
            else:
                pending.unclaimed()
            if pending.lease_is_over:
                await self._reap(pending)
        self._checked_at = clock.monotonic()

    async def offer(self, pending: Pending) -> None:
        """Write the attempt and its graph to the store, even if they were there before."""
        await self._blobs.put(pending.order.wanted.graph)
        await self._ledger.open(pending.task)
        if pending.result.done():  # it was cancelled meanwhile
            await self._ledger.close(pending.task.id)

    async def restore(self) -> None:
        """Offer again the orders that wait for a worker and are missing in the store."""
        waiting = [each for each in self._pending.values() if not each.worker and not each.result.done()]
        if waiting:
            opened = set(await self._ledger.opened())
            for pending in waiting:
                if pending.task.id not in opened:
                    await self.offer(pending)

    async def retry(self, pending: Pending, result: Result | None = None) -> None:
        """Offer another attempt, or end the order after MAX_ATTEMPTS.

        `result` is that of the current attempt, None if its worker was lost or gave it back.
        """
        if pending.result.done():
            return  # it has ended or was cancelled, and is charged already
        if pending.task.attempt < MAX_ATTEMPTS:
            pending.next_attempt(result)
            # `close` deletes the order before its claim, so that no worker takes the old attempt in between.
            await self._ledger.close(pending.task.id)
            await self.offer(pending)
            return
        lost = _given_up(f"{MAX_ATTEMPTS} workers were lost over this compile")
        if result is None:
            pending.order.cost.lose(pending.run_s)
            pending.finish(lost)
        elif result.problem is not None and result.problem.get("code") == LostWorkerError.code:
            # With the number of attempts, so that the job is not started over.
            pending.finish(replace(result, problem=lost.problem))
        else:
            pending.finish(result)

    async def _read_claim(self, pending: Pending) -> None:
        # If the worker's claim was overwritten by a forged one, its next heartbeat replaces that.
        state = await self._ledger.state(pending.task)
        worker = pending.worker or (state.worker if state is not None else await self._ledger.worker(pending.task))
        if worker:
            pending.claimed_by(worker)
        if state is not None:
            pending.heartbeat(state)

    async def _reap(self, pending: Pending) -> None:
        about = {"order": pending.task.id, "digest": pending.order.wanted.action.digest}
        if pending.worker:
            _log.warning("a worker was lost", worker=pending.worker, attempt=pending.task.attempt, **about)
            await self.retry(pending)
            return
        # The only claim is invalid: verified workers ignore it.
        pending.claimed_by_stranger()
        if pending.refused >= MAX_ATTEMPTS and not self._roster.count("worker"):
            _log.error("no verified worker takes an order", **about)
            pending.finish(_given_up("No verified worker of the farm took this compile"))
        else:
            await self.offer(pending)


def _given_up(reason: str) -> Result:
    error = LostWorkerError(f"{reason}; it is not retried.", details={"attempts": MAX_ATTEMPTS})
    return Result("", problem=error.to_problem())

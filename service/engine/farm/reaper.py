"""Checks the workers of a service's orders, and offers an order again when its worker was lost.

Every service reaps its own orders, so there is no leader. If a service is lost, the service that takes over its jobs
makes new orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import structlog

from service import clock
from service.engine.order import OnProgress, Order
from service.fairness.queue_time import queue_time
from service.lease import LEASE_S, Lease
from service.store.blobs import Blobs
from tensorkiln.errors import LostWorkerError

from .ledger import Ledger, Result, State, Task
from .roster import Roster

MAX_ATTEMPTS: Final = 5
"""How many workers may be lost over an order."""
_log = structlog.get_logger()


class Pending:
    """An open order. `task` is its current attempt, as the store should have it; `result` is set at the end.

    `worker` is the worker that has claimed it, empty while none is known. `refused` counts the leases in which the only
    claim was invalid.
    """

    def __init__(self, order: Order, task: Task, on_progress: OnProgress) -> None:
        self.order = order
        self.task = task
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue_time, self._is_waiting = queue_time(), False
        self._set_waiting(True)
        self._on_progress = on_progress
        self._reset()

    def _reset(self) -> None:
        self.worker = ""
        self.refused = self._reported = 0
        self.lease = Lease()
        self._begun_at = self.lease.renewed_at

    @property
    def lease_is_over(self) -> bool:
        return self.lease.is_over

    def claimed_by(self, worker: str) -> None:
        if not self.worker:
            self._set_waiting(False)
            self.worker = worker
            self.lease.renew()
            self._begun_at = self.lease.renewed_at

    @property
    def run_s(self) -> float:
        """Seconds for which a worker has had the current attempt.

        A lost worker counts for at most one lease after its last heartbeat, however late the loss is noticed.
        """
        return min(clock.monotonic(), self.lease.renewed_at + LEASE_S) - self._begun_at if self.worker else 0.0

    def heartbeat(self, state: State) -> None:
        """Renew the lease by a heartbeat, unless it is an old one: an attacker may have written it again."""
        if self.lease.heartbeat(state.beat):
            self.report(state.news)

    def report(self, news: Sequence[Mapping[str, Any]]) -> None:
        """Report the events of this attempt that are new; `news` has all of them."""
        for each in news[self._reported :]:
            self._on_progress(each)
        self._reported = max(self._reported, len(news))

    def charge(self, result: Result) -> None:
        self.order.cost.seconds += result.run_s
        self.order.cost.spending.add(result.cpu_s)

    def finish(self, result: Result) -> None:
        """Set the result, unless the order was cancelled meanwhile."""
        if not self.result.done():
            self._set_waiting(False)
            self.result.set_result(result)

    def abandon(self) -> None:
        self._set_waiting(False)
        self.result.cancel()

    def next_attempt(self, result: Result | None) -> None:
        """Charge the current attempt, which failed with `result` or was lost (None), and begin the next."""
        if result is None:
            self.order.cost.lose(self.run_s)
        else:
            self.charge(result)
        self._set_waiting(True)
        self.task = replace(self.task, attempt=self.task.attempt + 1)
        self._reset()
        self._on_progress({"stage": "retry", "attempt": self.task.attempt})

    def _set_waiting(self, yes: bool) -> None:
        """Count time as waiting for a worker, or as running."""
        if yes != self._is_waiting:
            self._is_waiting = yes
            change = 1 if yes else -1
            self._queue_time.change(waiting=change, running=-change)


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
                pending.lease.renew()  # no heartbeat could be read
        for identifier, pending in tuple(self._pending.items()):
            if pending.result.done():
                continue
            if identifier in claimed:
                await self._read_claim(pending)
            elif pending.worker:
                await self.retry(pending)  # its worker gave it back
            else:
                pending.lease.renew()
                pending.refused = 0
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
        pending.lease.renew()
        pending.refused += 1
        if pending.refused >= MAX_ATTEMPTS and not self._roster.count("worker"):
            _log.error("no verified worker takes an order", **about)
            pending.finish(_given_up("No verified worker of the farm took this compile"))
        else:
            await self.offer(pending)


def _given_up(reason: str) -> Result:
    error = LostWorkerError(f"{reason}; it is not retried.", details={"attempts": MAX_ATTEMPTS})
    return Result("", problem=error.to_problem())

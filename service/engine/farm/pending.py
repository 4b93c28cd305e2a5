"""An open order of a service: its current attempt, the lease of its worker, and what it cost so far."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service import clock
from service.engine.order import OnProgress, Order
from service.fairness.queue_time import queue_time
from service.lease import LEASE_S, Lease

from .ledger import Result, State, Task


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
        self.order.cost.run_s += result.run_s
        self.order.cost.add(result.cpu_s)

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

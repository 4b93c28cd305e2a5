"""An order that the farm has, as the service that submitted it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from service import clock
from service.engine.order import OnProgress, Order
from service.fairness.queue_time import queue_time
from service.lease import LEASE_S, Lease

from .ledger import Result, State, Task

MAX_ATTEMPTS: Final = 5
"""How many workers may be lost over an order."""


class Pending:
    """`task` is the present attempt at `order`, as it is to be in the store; `result` is set at the end.

    `worker` is at it, empty while nobody is known to be. `refused` counts the leases for which it was somebody's who is
    not believed.
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
        self._lease = Lease()
        self._begun_at = self._lease.renewed_at

    @property
    def lease_is_over(self) -> bool:
        """Whether nothing was heard of it for a lease."""
        return self._lease.is_over

    def renew_lease(self) -> None:
        """Nobody listened for a while: its worker has a whole lease again."""
        self._lease.renew()

    def unclaimed(self) -> None:
        """Nobody is at it."""
        self._lease.renew()
        self.refused = 0

    def claimed_by_stranger(self) -> None:
        """For a lease it was somebody's who is not believed."""
        self._lease.renew()
        self.refused += 1

    def claimed_by(self, worker: str) -> None:
        """A worker is at the attempt."""
        if not self.worker:
            self._set_waiting(False)
            self.worker = worker
            self._lease.renew()
            self._begun_at = self._lease.renewed_at

    @property
    def run_s(self) -> float:
        """Seconds for which a worker has been at the present attempt.

        One that is lost was at it for a lease after it was last heard of at most, however late its loss is found.
        """
        return min(clock.monotonic(), self._lease.renewed_at + LEASE_S) - self._begun_at if self.worker else 0.0

    def heartbeat(self, state: State) -> None:
        """A worker gave a sign of life, maybe one that is known already, which somebody may have put there again."""
        if self._lease.heartbeat(state.beat):
            self.report(state.news)

    def report(self, news: Sequence[Mapping[str, Any]]) -> None:
        """All news of this attempt, of which the first have been told."""
        for each in news[self._reported :]:
            self._on_progress(each)
        self._reported = max(self._reported, len(news))

    def charge(self, result: Result) -> None:
        """What an attempt has taken, by the word of the worker that made it."""
        self.order.cost.seconds += result.run_s
        self.order.cost.spending.add(result.cpu_s)

    def finish(self, result: Result) -> None:
        """This is how it ended, unless it was given up meanwhile."""
        if not self.result.done():
            self._set_waiting(False)
            self.result.set_result(result)

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        self._set_waiting(False)
        self.result.cancel()

    def next_attempt(self, result: Result | None) -> None:
        """The present one came to a result that is not the order's, or is lost; it is paid for all the same."""
        if result is None:
            self.order.cost.lose(self.run_s)
        else:
            self.charge(result)
        self._set_waiting(True)
        self.task = replace(self.task, attempt=self.task.attempt + 1)
        self._reset()
        self._on_progress({"stage": "retry", "attempt": self.task.attempt})

    def _set_waiting(self, yes: bool) -> None:
        """Whether it waits for a worker, while it has its turn here."""
        if yes != self._is_waiting:
            self._is_waiting = yes
            change = 1 if yes else -1
            self._queue_time.change(waiting=change, running=-change)

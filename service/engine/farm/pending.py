"""An order that the farm has, as the service that submitted it sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from service.engine.order import Order
from service.engine.protocol import Tell
from service.fairness.queue_time import queue_time

from .ledger import Result, State, Task
from .message import Message

LEASE_S: Final = 5.0
"""A worker that has not been heard of for so long has lost its order; a message so old may have been lost."""


class Pending:
    """`message` announced the present attempt, at `sent_at`; `result` is set at the end. Times are monotonic, in s.

    `task` is the order as it is to be in the store. `vain` counts the messages about it that workers took without
    beginning it, `passed` is the last attempt that has ended with what may pass.
    """

    def __init__(self, order: Order, task: Task, message: Message, tell: Tell) -> None:
        self.order = order
        self.task = task
        self.message = message
        self.passed = 0
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.sent_at = time.monotonic()
        self.is_claimed = False
        self._queue_time, self._is_waiting = queue_time(), False
        self._waits(True)
        self.vain = 0
        self.claimed_at = self.sent_at
        self.seen_at = self.sent_at
        self._tell = tell
        self._beats: dict[str, int] = {}
        self._told = 0

    def claim(self) -> None:
        """A worker has begun the attempt."""
        if not self.is_claimed:
            self._waits(False)
            self.is_claimed = True
            self.claimed_at = self.seen_at = time.monotonic()

    def claimed_s(self) -> float:
        """Seconds for which a worker has been at the present attempt.

        One that is lost was at it for a lease after it was last heard of at most, however late its loss is found.
        """
        return min(time.monotonic(), self.seen_at + LEASE_S) - self.claimed_at if self.is_claimed else 0.0

    def see(self, state: State) -> None:
        """A worker gave a sign of life, maybe one that is known already, which somebody may have put there again."""
        if state.attempt == self.message.attempt and state.beat > self._beats.get(state.worker, -1):
            self._beats[state.worker] = state.beat
            self.seen_at = time.monotonic()
            self.hear(state.news)

    def hear(self, news: Sequence[Mapping[str, Any]]) -> None:
        """All news of this attempt, of which the first have been told."""
        for each in news[self._told :]:
            self._tell(each)
        self._told = max(self._told, len(news))

    def charge(self, result: Result) -> None:
        """What an attempt has taken, by the word of the worker that made it."""
        self.order.cost.seconds += result.run_s
        self.order.cost.spending.add(result.cpu_s)

    def settle(self, result: Result) -> None:
        """This is how it ended, unless it was given up meanwhile."""
        if not self.result.done():
            self._waits(False)
            self.result.set_result(result)

    def forget(self) -> None:
        """Nobody waits for it any more."""
        self._waits(False)
        self.result.cancel()

    def next_attempt(self, result: Result | None) -> None:
        """The present one came to a result that is not the order's, or is lost; it is paid for all the same."""
        if result is None:
            self.order.cost.lose(self.claimed_s())
        else:
            self.charge(result)
        self._waits(True)
        self.message = replace(self.message, attempt=self.message.attempt + 1)
        self.is_claimed, self.vain, self._beats, self._told = False, 0, {}, 0
        self.sent_at = self.seen_at = time.monotonic()
        self._tell({"stage": "retry", "attempt": self.message.attempt})

    def _waits(self, yes: bool) -> None:
        """Whether it waits for a worker, while it has its turn here."""
        if yes != self._is_waiting:
            self._is_waiting = yes
            change = 1 if yes else -1
            self._queue_time.change(waiting=change, running=-change)

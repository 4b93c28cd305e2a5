"""Run a bounded number of jobs at a time, tenants in turn, with a queue of bounded length and waiting time."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeVar

from service import clock
from tensorkiln.errors import RateLimitedError, TensorkilnError, UnavailableError

from .queue_time import QueueTime, queue_time

T = TypeVar("T")
_MAX_RETRY_S: Final = 60
_WIDER_S: Final = 1.0
"""Seconds between checks whether a lane has become wider."""
_LOOK_AGAIN_S: Final = 0.02
"""Least seconds between checks whether a request has waited for too long."""


@dataclass(frozen=True, slots=True)
class Share:
    """A tenant and its weight; a busy tenant with twice the weight gets twice as much."""

    tenant: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Waiting(Generic[T]):
    """An item that waits for its turn since `since` (monotonic), with an estimated `cost` in seconds."""

    share: Share
    cost: float
    item: T
    since: float = field(default_factory=clock.monotonic)


@dataclass(slots=True)
class _Flow(Generic[T]):
    weight: float
    time: float
    queue: deque[Waiting[T]] = field(default_factory=deque["Waiting[T]"])
    running: int = 0


class FairQueue(Generic[T]):
    """Waiting items by tenant. `most_running`, if it is not 0, limits the items of one tenant that run at a time."""

    def __init__(self, most_running: int = 0) -> None:
        self._most_running = most_running
        self._flows: dict[str, _Flow[T]] = {}
        self._now = 0.0

    def __len__(self) -> int:
        return sum(len(flow.queue) for flow in self._flows.values())

    def push(self, share: Share, cost: float, item: T) -> Waiting[T]:
        waiting = Waiting(share, cost, item)
        flow = self._flows.setdefault(share.tenant, _Flow(share.weight, self._now))
        flow.weight = share.weight
        if not flow.queue:
            flow.time = max(flow.time, self._now)
        flow.queue.append(waiting)
        return waiting

    def pop(self) -> Waiting[T] | None:
        """Take the next item, which counts as running; None when nothing may start."""
        ready = [flow for flow in self._flows.values() if flow.queue and self._may_run(flow)]
        if not ready:
            return None
        flow = min(ready, key=lambda flow: flow.time)
        waiting = flow.queue.popleft()
        self._now = max(self._now, flow.time)
        flow.time += waiting.cost / flow.weight
        flow.running += 1
        return waiting

    def finish(self, waiting: Waiting[T], cost: float) -> None:
        """Record that an item from `pop` has ended, with its true cost."""
        flow = self._flows[waiting.share.tenant]
        flow.running -= 1
        flow.time += (cost - waiting.cost) / flow.weight
        self._forget_idle()

    def remove(self, waiting: Waiting[T]) -> None:
        """Remove an item that was given up; do nothing when it is not waiting."""
        flow = self._flows.get(waiting.share.tenant)
        if flow is None or waiting not in flow.queue:
            return
        flow.queue.remove(waiting)
        self._forget_idle()

    def heaviest(self, share: Share, cost: float) -> Waiting[T] | None:
        """The last item of the tenant with the largest backlog per weight, to be dropped; None for that of `share`."""
        own = self.backlog(share.tenant) + cost
        loads = {tenant: self.backlog(tenant) / flow.weight for tenant, flow in self._flows.items() if flow.queue}
        tenant = max(loads, key=lambda tenant: loads[tenant], default=share.tenant)
        if tenant == share.tenant or loads[tenant] <= own / share.weight:
            return None
        return self._flows[tenant].queue[-1]

    def backlog(self, tenant: str | None = None) -> float:
        """The estimated seconds of waiting items, of one tenant or of all."""
        flows = self._flows.values() if tenant is None else [self._flows[tenant]] if tenant in self._flows else []
        return sum(waiting.cost for flow in flows for waiting in flow.queue)

    def oldest(self) -> float | None:
        """Since when the oldest item waits (monotonic); None when nothing waits."""
        return min((flow.queue[0].since for flow in self._flows.values() if flow.queue), default=None)

    def is_full(self, tenant: str) -> bool:
        flow = self._flows.get(tenant)
        return flow is not None and not self._may_run(flow)

    def _may_run(self, flow: _Flow[T]) -> bool:
        return not self._most_running or flow.running < self._most_running

    def _forget_idle(self) -> None:
        if not any(flow.queue or flow.running for flow in self._flows.values()):
            # The end of a busy period: all debts are cancelled.
            self._now = max((flow.time for flow in self._flows.values()), default=self._now)
        self._flows = {
            tenant: flow for tenant, flow in self._flows.items() if flow.queue or flow.running or flow.time > self._now
        }


@dataclass(slots=True)
class Turn:
    """A turn in a lane. `cost_s` is what it cost, by its holder or else by `end`; `charge` takes processor seconds."""

    on_end: Callable[[Turn], None]
    charge: Callable[[float], None]
    cost_s: float | None = None
    is_over: bool = False

    def end(self) -> None:
        """Give the place to the next. The rest of the block of this turn must need no processor."""
        if not self.is_over:
            self.is_over = True
            self.on_end(self)


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most `width` jobs at a time, `tenant_width` of one tenant (0: all); `queue` wait, none longer than `age_s`."""

    width: int
    queue: int
    age_s: float | None = None
    tenant_width: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs wait and run in a lane, and for how many seconds the oldest has waited."""

    waiting: int
    running: int
    oldest_s: float


class FairLane:
    """Grants turns in the order of `FairQueue`; `width` returns how many, of `bounds.width`, may run now.

    A refused turn is a RateLimitedError for a named tenant, and an UnavailableError without tenants.
    """

    def __init__(
        self,
        bounds: Bounds,
        on_spent: Callable[[str, float], None] = lambda _tenant, _seconds: None,
        width: Callable[[], int] | None = None,
    ) -> None:
        self._bounds = bounds
        self._width = width or (lambda: bounds.width)
        # A turn that may not be refused later, in a lane that does not become wider, is waited for without a timer.
        self._is_steady = bounds.age_s is None and width is None
        self._looked_at = 0.0
        self._on_spent = on_spent
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(bounds.tenant_width)
        self._running = 0

    def load(self) -> Load:
        oldest = self._queue.oldest()
        return Load(len(self._queue), self._running, 0.0 if oldest is None else clock.monotonic() - oldest)

    @asynccontextmanager
    async def admit(self, share: Share, cost_s: float) -> AsyncGenerator[Turn]:
        """Wait for a turn that is estimated to cost `cost_s` seconds of work, and have it for the block."""
        waiting = await self._turn(share, cost_s)
        begin = clock.monotonic()

        def end(turn: Turn) -> None:
            turn.cost_s = turn.cost_s if turn.cost_s is not None else clock.monotonic() - begin
            self._end(waiting, turn.cost_s)

        turn = Turn(end, partial(self._on_spent, share.tenant))
        try:
            yield turn
        finally:
            turn.end()

    async def _turn(self, share: Share, cost_s: float) -> Waiting[asyncio.Future[None]]:
        has_to_wait = self._running >= self._width() or self._queue.is_full(share.tenant)
        if has_to_wait and len(self._queue) >= self._bounds.queue:
            self._make_room(share, cost_s)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._queue.push(share, cost_s, future)
        self._dispatch()
        if future.done():
            return waiting
        waited = queue_time()
        try:
            with waited.with_more(waiting=1):
                await (future if self._is_steady else self._aging(future, share, waited))
        except BaseException:
            self._leave(waiting)
            raise
        return waiting

    async def _aging(self, future: asyncio.Future[None], share: Share, waited: QueueTime) -> None:
        """Wait for a turn; refuse it after `age_s` of queue time, which excludes time when parts of the request run."""
        age_s = math.inf if self._bounds.age_s is None else self._bounds.age_s
        until = waited.seconds + age_s
        while not future.done():
            left_s = until - waited.seconds
            if left_s <= 0:
                raise self._refusal(share, "queue_age_s", age_s, age_s)
            await asyncio.wait({future}, timeout=min(max(left_s, _LOOK_AGAIN_S), _WIDER_S))
            # The lane may have become wider; one waiting request looks for all.
            if clock.monotonic() - self._looked_at >= _WIDER_S:
                self._dispatch()
        await future

    def _leave(self, waiting: Waiting[asyncio.Future[None]]) -> None:
        future = waiting.item
        if not future.done() or future.cancelled():
            self._queue.remove(waiting)
        elif future.exception() is None:
            self._end(waiting, 0.0)

    def _make_room(self, share: Share, cost_s: float) -> None:
        victim = self._queue.heaviest(share, cost_s)
        limit = ("queue", self._bounds.queue, len(self._queue))
        if victim is None:
            raise self._refusal(share, *limit)
        self._queue.remove(victim)
        if not victim.item.done():
            victim.item.set_exception(self._refusal(victim.share, *limit))

    def _dispatch(self) -> None:
        self._looked_at = clock.monotonic()
        while self._running < self._width():
            waiting = self._queue.pop()
            if waiting is None:
                return
            if waiting.item.done():
                # It was given up just now.
                self._queue.finish(waiting, 0.0)
                continue
            self._running += 1
            waiting.item.set_result(None)

    def _end(self, waiting: Waiting[asyncio.Future[None]], spent: float) -> None:
        self._running -= 1
        self._queue.finish(waiting, spent)
        self._dispatch()

    def _refusal(self, share: Share, limit: str, maximum: float, actual: float) -> TensorkilnError:
        what = (
            f"The compile has waited for {maximum:g} s, which is the limit"
            if limit == "queue_age_s"
            else f"{actual} compiles wait already, which is the limit"
        )
        if not share.tenant:
            details = {"waiting": len(self._queue), "queue": self._bounds.queue}
            return UnavailableError(f"{what}; send the request again in a moment.", details=details)
        wait_s = min(max(1, math.ceil(self._queue.backlog() / self._width())), _MAX_RETRY_S)
        details = {"limit": limit, "maximum": maximum, "actual": actual, "retry_after_s": wait_s}
        return RateLimitedError(f"{what}; come back in {wait_s} s.", details=details)

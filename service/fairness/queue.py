"""Weighted fair queueing by start times, with costs that are corrected when they are known.

Each tenant has a virtual time: the seconds of cost that it was served, over its weight. The tenant that is furthest
behind is next. A tenant that returns after a pause begins at the time of the others: it can neither save nor lose turns
(P. Goyal, H. Vin, H. Cheng, "Start-time fair queueing", SIGCOMM 1996, with flow tags in place of packet tags).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from service import clock

T = TypeVar("T")


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
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, share: Share, cost: float, item: T) -> Waiting[T]:
        """Append `item` to the queue of its tenant."""
        waiting = Waiting(share, cost, item)
        flow = self._flows.setdefault(share.tenant, _Flow(share.weight, self._now))
        flow.weight = share.weight
        if not flow.queue:
            flow.time = max(flow.time, self._now)
        flow.queue.append(waiting)
        self._length += 1
        return waiting

    def pop(self) -> Waiting[T] | None:
        """Take the next item, which counts as running; None when nothing may start."""
        ready = [flow for flow in self._flows.values() if flow.queue and self._may_run(flow)]
        if not ready:
            return None
        flow = min(ready, key=lambda flow: flow.time)
        waiting = flow.queue.popleft()
        self._length -= 1
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
        self._length -= 1
        self._forget_idle()

    def heaviest(self, share: Share, cost: float) -> Waiting[T] | None:
        """The item to drop so that `share` can push `cost`: the last of the tenant with the largest backlog per weight.

        None when that is the tenant of `share`.
        """
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
        """Whether a tenant has as much running as it may have."""
        flow = self._flows.get(tenant)
        return flow is not None and not self._may_run(flow)

    def _may_run(self, flow: _Flow[T]) -> bool:
        return not self._most_running or flow.running < self._most_running

    def _forget_idle(self) -> None:
        if not self._length and not any(flow.running for flow in self._flows.values()):
            # The end of a busy period: all debts are cancelled.
            self._now = max((flow.time for flow in self._flows.values()), default=self._now)
        gone = [tenant for tenant, flow in self._flows.items() if self._is_idle(flow)]
        for tenant in gone:
            del self._flows[tenant]

    def _is_idle(self, flow: _Flow[T]) -> bool:
        return not flow.queue and not flow.running and flow.time <= self._now

"""Fairness as the engine uses it: admission of requests, and turns for their tasks, for the current caller."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from service import clock
from service.identity.caller import caller
from service.identity.register import TenantRecord
from service.settings import Settings
from tensorkiln.errors import RateLimitedError

from .lane import Bounds, FairLane, Load, Share, Turn
from .queue_time import queue_time

_MAX_BUDGETS: Final = 10_000
# Weight of the newest task in the mean: about the last twenty count.
_SHARE: Final = 0.1
_FIRST_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one tenant: running requests, and processor seconds in every `window_s`; 0 for no limit."""

    in_flight: int = 0
    cpu_s: float = 0.0
    window_s: float = 60.0


@dataclass(slots=True)
class Budget:
    """A leaky bucket of the processor seconds that a tenant has spent `of` its allowance, at the second `at`."""

    of: Allowance
    spent_s: float = 0.0
    at: float = 0.0

    def charge(self, seconds: float, now: float) -> None:
        """Add seconds that were spent; the level may exceed the maximum."""
        self.spent_s, self.at = self.level(now) + seconds, now

    def level(self, now: float) -> float:
        """The level after draining at the allowed rate."""
        return max(0.0, self.spent_s - (now - self.at) * self.of.cpu_s / self.of.window_s)

    def wait_s(self, now: float) -> int:
        """Whole seconds until something may be spent again; 0 when it may be now."""
        excess = self.level(now) - self.of.cpu_s
        return max(1, math.ceil(excess * self.of.window_s / self.of.cpu_s)) if excess >= 0 else 0


class Gate:
    """Counts requests and seconds by tenant."""

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self._budgets: dict[str, Budget] = {}

    @contextmanager
    def pass_through(self, tenant: str, allowance: Allowance) -> Generator[None]:
        """Count a request during the block. RateLimitedError when the tenant has reached a limit."""
        self._check_spent(tenant, allowance)
        under_way = self._in_flight[tenant]
        if allowance.in_flight and under_way >= allowance.in_flight:
            raise RateLimitedError(
                f"{under_way} compiles of your tenant are under way, which is its limit; come back in a moment.",
                details=_details("in_flight", allowance.in_flight, under_way, 1),
            )
        self._in_flight[tenant] += 1
        try:
            yield
        finally:
            self._in_flight[tenant] -= 1
            if not self._in_flight[tenant]:
                del self._in_flight[tenant]

    def charge(self, tenant: str, seconds: float) -> None:
        if tenant in self._budgets:
            self._budgets[tenant].charge(seconds, clock.monotonic())

    def _check_spent(self, tenant: str, allowance: Allowance) -> None:
        if not allowance.cpu_s:
            self._budgets.pop(tenant, None)
            return
        now = clock.monotonic()
        if tenant not in self._budgets and len(self._budgets) >= _MAX_BUDGETS:
            self._budgets = {
                tenant: budget
                for tenant, budget in self._budgets.items()
                if budget.level(now) > 0 or self._in_flight[tenant]
            }
        budget = self._budgets.setdefault(tenant, Budget(allowance, at=now))
        budget.of = allowance
        wait_s = budget.wait_s(now)
        if wait_s:
            spent = round(budget.level(now), 3)
            raise RateLimitedError(
                f"Your tenant has spent {spent:g} of {allowance.cpu_s:g} processor seconds "
                f"for every {allowance.window_s:g} s; come back in {wait_s} s.",
                details={**_details("cpu_s", allowance.cpu_s, spent, wait_s), "window_s": allowance.window_s},
            )


def _details(limit: str, maximum: float, actual: float, retry_after_s: int) -> dict[str, object]:
    return {"limit": limit, "maximum": maximum, "actual": actual, "retry_after_s": retry_after_s}


class Estimate:
    """Seconds by size in bytes: the running mean of a class of powers of two, or of the one below, scaled."""

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}

    def seconds(self, size: int) -> float:
        wanted = size.bit_length()
        for known in range(wanted, -1, -1):
            if known in self._mean:
                return self._mean[known] * 2.0 ** (wanted - known)
        return min(self._mean.values(), default=_FIRST_S)

    def learn(self, size: int, seconds: float) -> None:
        known = self._mean.setdefault(size.bit_length(), seconds)
        self._mean[size.bit_length()] = known + _SHARE * (seconds - known)


class Turns:
    """Turns of one kind of task. Without `work`, a turn does not count as running: its holder waits for others."""

    def __init__(self, lane: FairLane, tenant: Callable[[str], TenantRecord], *, work: bool = True) -> None:
        self._lane = lane
        self._tenant = tenant
        self._work = work
        self._estimate = Estimate()

    def load(self) -> Load:
        return self._lane.load()

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncGenerator[Turn]:
        """Have a turn of the caller's tenant for a task on this many bytes. The errors are those of `FairLane`."""
        tenant = caller().tenant
        share = Share(tenant, self._tenant(tenant).weight)
        async with self._lane.admit(share, self._estimate.seconds(size)) as turn:
            with queue_time().with_more(running=1) if self._work else nullcontext():
                yield turn
        if turn.cost_s is not None:
            self._estimate.learn(size, turn.cost_s)


class Fairness:
    """The turns of an engine with these settings; `width` returns how many compiles may run now, if not all."""

    def __init__(
        self, settings: Settings, tenant: Callable[[str], TenantRecord], width: Callable[[], int] | None = None
    ) -> None:
        self._settings = settings
        self._tenant = tenant
        self._gate = Gate()
        bounds = Bounds(settings.width, settings.queue, settings.queue_age_s, settings.tenant_concurrency)
        self.compiles = Turns(FairLane(bounds, self._gate.charge, width), tenant)
        # Apart from the compiles, so that a hit does not wait for them, and with one place more than a tenant may have,
        # so that a hit does not wait for another tenant's flood either.
        at_once = settings.tenant_concurrency or settings.concurrency
        here = replace(bounds, width=settings.concurrency + 1, tenant_width=min(at_once, settings.concurrency))
        self.short_tasks = Turns(FairLane(here, self._gate.charge), tenant)
        # An accepted job waits without a time limit; its costs are counted where they arise.
        accepted = Bounds(settings.width, settings.width + settings.queue, tenant_width=settings.tenant_concurrency)
        self.jobs = Turns(FairLane(accepted, width=width), tenant, work=False)
        self.lanes = {"compiles": self.compiles, "short_jobs": self.short_tasks, "jobs": self.jobs}

    @contextmanager
    def request(self) -> Generator[None]:
        """Count the block as a request of the caller's tenant. RateLimitedError when it has reached a limit."""
        who = caller()
        if who.is_local:
            yield
            return
        of, settings = self._tenant(who.tenant), self._settings
        in_flight = of.in_flight if of.in_flight is not None else settings.tenant_in_flight
        cpu_s = of.cpu_s if of.cpu_s is not None else settings.tenant_cpu_s
        with self._gate.pass_through(who.tenant, Allowance(in_flight, cpu_s, settings.tenant_window_s)):
            yield

"""Fairness as the engine uses it: admission of requests, and turns for their tasks, for the current caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

from service.identity.caller import caller
from service.identity.register import TenantRecord
from service.settings import Settings

from .gate import Allowance, Gate
from .lane import Bounds, FairLane, Load, Turn
from .queue import Share
from .queue_time import queue_time

# Weight of the newest task in the mean: about the last twenty count.
_SHARE: Final = 0.1
_FIRST_S: Final = 0.1


class Estimate:
    """Seconds by size in bytes, in classes of powers of two: the running mean of the class, or of the nearest below.

    The mean of a class below is scaled with the size.
    """

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}

    def seconds(self, size: int) -> float:
        """The expected cost of a task of this size."""
        wanted = size.bit_length()
        for known in range(wanted, -1, -1):
            if known in self._mean:
                return self._mean[known] * 2.0 ** (wanted - known)
        return min(self._mean.values(), default=_FIRST_S)

    def learn(self, size: int, seconds: float) -> None:
        """Record the cost of a task of this size."""
        known = self._mean.setdefault(size.bit_length(), seconds)
        self._mean[size.bit_length()] = known + _SHARE * (seconds - known)


class Turns:
    """Turns of one kind of task: those that compile, or those that only read and write.

    Without `work`, a turn does not count as running: its holder waits for further turns.
    """

    def __init__(self, lane: FairLane, tenant: Callable[[str], TenantRecord], *, work: bool = True) -> None:
        self._lane = lane
        self._tenant = tenant
        self._work = int(work)
        self._estimate = Estimate()

    def load(self) -> Load:
        """The current load of the lane."""
        return self._lane.load()

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncGenerator[Turn]:
        """Wait until the caller's tenant has its turn for a task on this many bytes, and have it for the block.

        RateLimitedError or UnavailableError when it does not get one.
        """
        tenant = caller().tenant
        share = Share(tenant, self._tenant(tenant).weight)
        async with self._lane.admit(share, self._estimate.seconds(size)) as turn:
            with queue_time().with_more(running=self._work):
                yield turn
        if turn.cost_s is not None:
            self._estimate.learn(size, turn.cost_s)


class Fairness:
    """The turns of an engine with these settings; `tenant` returns the record of a tenant.

    `width` returns how many compiles may run at a time now, of those that the settings allow.
    """

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

"""Limits of a tenant's running requests and processor seconds, checked before a request is admitted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from service import clock
from tensorkiln.errors import RateLimitedError

_MAX_BUDGETS: Final = 10_000


@dataclass(slots=True)
class Budget:
    """A leaky bucket of the processor seconds that a tenant has spent, as of the time `at` (seconds).

    There are no fixed windows: the level drains at the allowed rate.
    """

    spent_s: float = 0.0
    at: float = 0.0

    def charge(self, seconds: float, maximum_s: float, window_s: float, now: float) -> None:
        """Add seconds that were spent; the level may exceed the maximum."""
        self.spent_s = self.level(maximum_s, window_s, now) + seconds
        self.at = now

    def level(self, maximum_s: float, window_s: float, now: float) -> float:
        """The level after draining by `maximum_s` every `window_s`."""
        return max(0.0, self.spent_s - (now - self.at) * maximum_s / window_s)

    def wait_s(self, maximum_s: float, window_s: float, now: float) -> int:
        """Whole seconds until something may be spent again; 0 when it may be now."""
        excess = self.level(maximum_s, window_s, now) - maximum_s
        return max(1, math.ceil(excess * window_s / maximum_s)) if excess >= 0 else 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one tenant: running requests, and processor seconds in every `window_s`; 0 for no limit."""

    in_flight: int = 0
    cpu_s: float = 0.0
    window_s: float = 60.0


class Gate:
    """Counts requests and seconds by tenant. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = clock.monotonic) -> None:
        self._clock = clock
        self._in_flight: Counter[str] = Counter()
        self._budgets: dict[str, tuple[Budget, Allowance]] = {}

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
        """Count processor seconds of a tenant that was admitted."""
        found = self._budgets.get(tenant)
        if found is not None:
            budget, allowance = found
            budget.charge(seconds, allowance.cpu_s, allowance.window_s, self._clock())

    def _check_spent(self, tenant: str, allowance: Allowance) -> None:
        if not allowance.cpu_s:
            self._budgets.pop(tenant, None)
            return
        now = self._clock()
        if tenant not in self._budgets:
            self._forget_unspent(now)
        budget = self._budgets[tenant][0] if tenant in self._budgets else Budget(at=now)
        self._budgets[tenant] = (budget, allowance)
        wait_s = budget.wait_s(allowance.cpu_s, allowance.window_s, now)
        if wait_s:
            spent = round(budget.level(allowance.cpu_s, allowance.window_s, now), 3)
            raise RateLimitedError(
                f"Your tenant has spent {spent:g} of {allowance.cpu_s:g} processor seconds "
                f"for every {allowance.window_s:g} s; come back in {wait_s} s.",
                details={**_details("cpu_s", allowance.cpu_s, spent, wait_s), "window_s": allowance.window_s},
            )

    def _forget_unspent(self, now: float) -> None:
        if len(self._budgets) >= _MAX_BUDGETS:
            self._budgets = {
                tenant: (budget, of)
                for tenant, (budget, of) in self._budgets.items()
                if budget.level(of.cpu_s, of.window_s, now) > 0 or self._in_flight[tenant]
            }


def _details(limit: str, maximum: float, actual: float, retry_after_s: int) -> dict[str, object]:
    return {"limit": limit, "maximum": maximum, "actual": actual, "retry_after_s": retry_after_s}

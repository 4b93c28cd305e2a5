"""Leases: a holder that sends no heartbeat for this long has lost what it held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LEASE_S: Final = 5.0
"""Without a heartbeat for this long, a holder loses its lease: of a job, an order, an attempt, its place in a farm."""
BEAT_S: Final = 1.5
"""How often everybody says that it lives."""


class Leases:
    """When each holder of something was last heard to say something new, by `now` in s.

    That is a clock of this process: no two have to agree. A heartbeat that was heard before is not new.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._heard: dict[str, tuple[int, float]] = {}

    def hear(self, holder: str, number: int) -> bool:
        """`holder` is found to have said for the `number`th time that it lives; whether it does."""
        if number > self._heard.get(holder, (-1, 0.0))[0]:
            self._heard[holder] = number, self._now()
        return self._now() - self._heard[holder][1] <= LEASE_S

    def forget(self, holder: str) -> None:
        """`holder` says no more that it lives."""
        self._heard.pop(holder, None)

"""Processor seconds of tasks as the operating system reports them: after their processes have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Spending:
    """Sums processor seconds. `charge` is called with each amount, possibly long after the task's answer."""

    def __init__(self, charge: Callable[[float], None] = lambda _: None) -> None:
        self._charge = charge
        self._unknown = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self.seconds = 0.0

    def begin(self) -> None:
        """Count one more process whose seconds are not known yet."""
        self._unknown += 1
        self._settled.clear()

    def end(self, seconds: float) -> None:
        """Add the seconds of a process counted by `begin`."""
        self.add(seconds)
        self._unknown -= 1
        if not self._unknown:
            self._settled.set()

    def add(self, seconds: float) -> None:
        """Add seconds that were spent elsewhere."""
        self.seconds += seconds
        self._charge(seconds)

    async def settled(self, within_s: float) -> bool:
        """Wait up to `within_s` seconds for all outstanding amounts; return whether they arrived."""
        try:
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

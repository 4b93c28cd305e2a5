"""What tasks take of the processors, by the word of the operating system: it comes when their processes have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Spending:
    """Processor seconds of processes. `charge` hears of those of each, maybe long after somebody has had its answer."""

    def __init__(self, charge: Callable[[float], None] = lambda _: None) -> None:
        self._charge = charge
        self._unknown = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self.seconds = 0.0

    def begin(self) -> None:
        """One more process, whose seconds are to be told."""
        self._unknown += 1
        self._settled.clear()

    def end(self, seconds: float) -> None:
        """What one of those that have begun has taken."""
        self.add(seconds)
        self._unknown -= 1
        if not self._unknown:
            self._settled.set()

    def add(self, seconds: float) -> None:
        """What was taken elsewhere."""
        self.seconds += seconds
        self._charge(seconds)

    async def settled(self, within_s: float) -> bool:
        """Whether all is told, within so many seconds at most."""
        try:
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

"""Seconds that may be spent in a window, without counting windows: what is spent fades at the rate that is allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """What a tenant has spent and has not yet earned back, in processor seconds, at the time `at` (seconds)."""

    spent_s: float = 0.0
    at: float = 0.0

    def charge(self, seconds: float, maximum_s: float, window_s: float, now: float) -> None:
        """Count what was spent; it may exceed the maximum, and is then owed."""
        self.spent_s = self.level(maximum_s, window_s, now) + seconds
        self.at = now

    def level(self, maximum_s: float, window_s: float, now: float) -> float:
        """What is left of it after fading by `maximum_s` every `window_s`."""
        return max(0.0, self.spent_s - (now - self.at) * maximum_s / window_s)

    def wait_s(self, maximum_s: float, window_s: float, now: float) -> int:
        """Whole seconds until something may be spent again; 0 when it may be now."""
        excess = self.level(maximum_s, window_s, now) - maximum_s
        return max(1, math.ceil(excess * window_s / maximum_s)) if excess >= 0 else 0

"""How long somebody waits, whatever they wait for meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of `seconds` that somebody has given: `at`, a time of `time.monotonic`."""

    seconds: float
    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The end of so many seconds from now."""
        return Deadline(seconds, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds until then, 0 when it is over."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of it."""
        return time.monotonic() >= self.at

"""Deadlines of calls."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline at the time `at` of `time.monotonic`, set from a duration of `seconds`."""

    seconds: float
    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The deadline `seconds` from now."""
        return Deadline(seconds, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, 0 after the deadline."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.at

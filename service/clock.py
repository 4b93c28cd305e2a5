"""The time and chance of whatever runs: those of the machine, or those that somebody gave to it.

A clock is given to a task and to those that are made in it, as its caller is. Waiting is the event loop's.
"""

from __future__ import annotations

import secrets
import time as machine
from contextvars import ContextVar
from typing import Final


class Clock:
    """Those of the machine; a simulated one has others."""

    def monotonic(self) -> float:
        """Seconds since some moment, which never go back."""
        return machine.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return machine.time()

    def token_hex(self, size: int) -> str:
        """So many random bytes in hexadecimal digits: a name that nobody else has."""
        return secrets.token_hex(size)


given: Final[ContextVar[Clock]] = ContextVar("clock", default=Clock())  # noqa: B039 (it has no state)


def monotonic() -> float:
    """As the clock here has it."""
    return given.get().monotonic()


def time() -> float:
    """As the clock here has it."""
    return given.get().time()


def token_hex(size: int) -> str:
    """As the clock here has it."""
    return given.get().token_hex(size)

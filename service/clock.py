"""Time and randomness: those of the machine, or of a simulated clock set in the current context.

The clock is a context variable, so a task inherits it from its creator. Sleeping is left to the event loop.
"""

from __future__ import annotations

import secrets
import time as machine
from contextvars import ContextVar
from typing import Final


class Clock:
    """Time and randomness of the machine; simulations override the methods."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""
        return machine.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return machine.time()

    def token_hex(self, size: int) -> str:
        """`size` random bytes in hexadecimal digits, for a unique name."""
        return secrets.token_hex(size)


given: Final[ContextVar[Clock]] = ContextVar("clock", default=Clock())  # noqa: B039 (it has no state)


def monotonic() -> float:
    return given.get().monotonic()


def time() -> float:
    return given.get().time()


def token_hex(size: int) -> str:
    return given.get().token_hex(size)

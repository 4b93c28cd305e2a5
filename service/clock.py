"""The time and chance of whatever runs: those of the machine, or those that somebody gave to it.

A clock is given to a task and to those that are made in it, as its caller is. Waiting is the event loop's.
"""

from __future__ import annotations

import secrets
import time as machine
from contextvars import ContextVar
from typing import Final, Protocol


class Clock(Protocol):
    """Where time and chance come from."""

    def monotonic(self) -> float:
        """Seconds since some moment, which never go back."""
        ...

    def time(self) -> float:
        """Seconds since the epoch."""
        ...

    def token_hex(self, size: int) -> str:
        """So many random bytes in hexadecimal digits: a name that nobody else has."""
        ...


class _Machine:
    """The clock that there is where none was given."""

    def monotonic(self) -> float:
        return machine.monotonic()

    def time(self) -> float:
        return machine.time()

    def token_hex(self, size: int) -> str:
        return secrets.token_hex(size)


given: Final[ContextVar[Clock]] = ContextVar("clock", default=_Machine())  # noqa: B039 (it has no state)


def monotonic() -> float:
    """Seconds since some moment, by the clock here."""
    return given.get().monotonic()


def time() -> float:
    """Seconds since the epoch, by the clock here."""
    return given.get().time()


def token_hex(size: int) -> str:
    """So many random bytes in hexadecimal digits, by the chance here."""
    return given.get().token_hex(size)

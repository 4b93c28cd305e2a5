"""Clocks that a test sets, and tasks that run by one of them."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from service.clock import Clock, given

T = TypeVar("T")


class HandClock(Clock):
    """Its seconds pass when the test says so."""

    def __init__(self, at: float) -> None:
        self.at = at

    def monotonic(self) -> float:
        return self.at

    def time(self) -> float:
        return self.at


class LateClock(Clock):
    """Another clock whose time of day was set too late."""

    def __init__(self, behind_s: float, right: Clock | None = None) -> None:
        self.behind_s = behind_s
        self._right = right or Clock()

    def monotonic(self) -> float:
        return self._right.monotonic()

    def time(self) -> float:
        return self._right.time() - self.behind_s


@contextmanager
def going_by(clock: Clock) -> Generator[None]:
    """Inside the block it is what this clock says."""
    token = given.set(clock)
    try:
        yield
    finally:
        given.reset(token)


def by(clock: Clock, what: T) -> T:
    """`what`, whose methods go by this clock whoever calls them."""
    return cast(T, _By(clock, what))


class _By:
    def __init__(self, clock: Clock, what: Any) -> None:
        self._clock = clock
        self._what = what

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._what, name)
        if inspect.iscoroutinefunction(found):

            async def awaited(*what: Any, **how: Any) -> Any:
                with going_by(self._clock):
                    return await found(*what, **how)

            return awaited
        if not callable(found):
            return found

        def called(*what: Any, **how: Any) -> Any:
            with going_by(self._clock):
                return found(*what, **how)

        return called

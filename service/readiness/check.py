"""A check of a part that the service needs, whose result is cached for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from service import clock
from service.observe.instruments import READY
from tensorkiln.errors import TensorkilnError

PATIENCE_S: Final = 4.0
"""Seconds after which a check counts as failed until it ends, so that readiness is answered in time."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a part fails: a public summary, and the reason for the operator.

    With `in_part` the service may start nevertheless, because it can do part of its work.
    """

    summary: str
    reason: str
    in_part: bool = False

    @staticmethod
    def of(what: str, error: TensorkilnError, *, in_part: bool = False) -> Failure:
        """The failure of `what` because of `error`."""
        return Failure(f"{what} ({error.code})", f"{what}: {error.message}", in_part)


class Check:
    """`look` returns why the part `name` fails, or None; the result is valid for `good_for_s` seconds."""

    def __init__(self, name: str, look: Callable[[], Awaitable[Failure | None]], good_for_s: float = 0.0) -> None:
        self.name = name
        self._look = look
        self._good_for_s = good_for_s
        self._looking: asyncio.Task[Failure | None] | None = None
        self._begun_at = self._ended_at = float("-inf")

    async def failure(self, patience_s: float = PATIENCE_S) -> Failure | None:
        """Why the part fails; None when it works. A check that still runs after `patience_s` seconds fails."""
        looking = self._current()
        left = self._begun_at + patience_s - clock.monotonic()
        done, _ = await asyncio.wait({looking}, timeout=max(left, 0.0))
        if done:
            return looking.result()
        READY.labels(self.name).set(0)
        slow = f"there is no result after {patience_s:g} s"
        return Failure(slow, slow)

    async def close(self) -> None:
        """Cancel a running check."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _current(self) -> asyncio.Task[Failure | None]:
        now = clock.monotonic()
        if self._looking is None or (self._looking.done() and now - self._ended_at >= self._good_for_s):
            self._begun_at = now
            self._looking = asyncio.create_task(self._verdict())
        return self._looking

    async def _verdict(self) -> Failure | None:
        failure = await self._look()
        self._ended_at = clock.monotonic()
        READY.labels(self.name).set(failure is None)
        if failure is not None:
            _log.error("a check of readiness failed", check=self.name, reason=failure.reason)
        return failure

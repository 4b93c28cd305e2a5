"""A check of a part that the service needs, whose result is cached for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

import structlog

from service import clock
from service.observe.instruments import READY
from service.sandbox.compile_header import CompileHeader
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import TensorkilnError

PATIENCE_S: Final = 4.0
"""Seconds after which a check counts as failed until it ends, so that readiness is answered in time."""

_log = structlog.get_logger()
LIMITS: Final = Limits(deadline_s=5.0, memory_mib=256, file_mib=1)
AT_START: Final = replace(LIMITS, deadline_s=60.0)
"""For the first check of a service, which is slow on a machine where much starts at once."""
_WHAT: Final = "a small graph is not compiled"


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


class Canary:
    """Compiles in `sandbox`, and compares the bytes of every compile with those of the first."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._first: tuple[str, ...] = ()

    async def look(self, limits: Limits = LIMITS) -> Failure | None:
        """Compile the graph; return why that fails, or None."""
        try:
            answer = await self._sandbox.run("trial", Message(), limits)
            artifacts = CompileHeader.of(answer.header).artifacts
        except TensorkilnError as error:
            return Failure.of(_WHAT, error)
        given = {name: sha256(content).hexdigest() for name, content in answer.parts.items()}
        if not artifacts or any(given.get(f"artifact:{digest}") != digest for digest in artifacts):
            wrong = "a compile returns bytes that do not match its digests"
            return Failure(wrong, wrong)
        self._first = self._first or artifacts
        if artifacts != self._first:
            wrong = "a small graph is compiled to other bytes than before"
            return Failure(wrong, f"{wrong}: {', '.join(artifacts)} in place of {', '.join(self._first)}")
        return None


class Ping:
    """Checks that processes can be forked, in a sandbox that compiles nothing."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def look(self, limits: Limits = LIMITS) -> Failure | None:
        """Fork a process; return why that fails, or None."""
        try:
            await self._sandbox.run("ping", Message(), limits)
        except TensorkilnError as error:
            return Failure.of("no process is forked", error)
        return None

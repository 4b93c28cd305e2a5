"""A simulated process with its own clock and random numbers, which can be killed, frozen, slowed and disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from random import Random
from typing import Any, Final, TypeVar

from obstore.exceptions import GenericError

from service.clock import Clock, given

T = TypeVar("T")

EPOCH_S: Final = 1.7e9
"""The wall-clock time at which histories start, in seconds since 1970."""
_MOST_DELAY_S: Final = 0.02
_SLOW_S: Final = 2.0
_GIVES_UP_S: Final = 1.0

current: Final[ContextVar[Process | None]] = ContextVar("process", default=None)


class Process(Clock):
    """Runs coroutines with this clock, `skew_s` ahead of simulated time, and with random numbers from `chance`."""

    def __init__(self, name: str, build: str, chance: Random, skew_s: float = 0.0) -> None:
        self.name = name
        self.build = build
        self.chance = chance
        self.is_dead = False
        self.ended = asyncio.Event()
        self.is_slow = False
        self.is_cut_off = False
        self._skew_s = skew_s
        self._loop = asyncio.get_running_loop()
        self._thawed: asyncio.Event | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._context = copy_context()
        self._context.run(given.set, self)
        self._context.run(current.set, self)

    def monotonic(self) -> float:
        """As `Clock` has it."""
        return self._loop.time() + self._skew_s

    def time(self) -> float:
        """As `Clock` has it."""
        return EPOCH_S + self._loop.time() + self._skew_s

    def token_hex(self, size: int) -> str:
        """As `Clock` has it."""
        return self.chance.randbytes(size).hex()

    def makes(self, what: Callable[[], T]) -> T:
        """Call a function in the context of the process."""
        return self._context.run(what)

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task of the process."""
        return self._loop.create_task(work, context=self._context)

    def has(self, task: asyncio.Task[Any]) -> None:
        """Register a task of the process, so that `kill` cancels it."""
        self._tasks.append(task)

    def kill(self) -> None:
        """Kill the process: cancel its tasks; nothing that these still do reaches the store."""
        self.is_dead = True
        self.ended.set()
        self.thaw()
        for task in self._tasks:
            task.cancel()

    def freeze(self) -> None:
        """Suspend the process while time goes on."""
        if self._thawed is None:
            self._thawed = asyncio.Event()

    def thaw(self) -> None:
        """Resume the process."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    async def reach(self, *, is_there: bool) -> None:
        """Simulate the way of a request to the store, or, with `is_there`, the way of the answer back."""
        delay_s = self.chance.random() * _MOST_DELAY_S
        if self.is_slow and self.chance.random() < 0.3:
            delay_s = self.chance.random() * _SLOW_S
        # The delay may come before the effect of the request, after it, both, or not at all.
        if is_there == (self.chance.random() < 0.5):
            await asyncio.sleep(delay_s)
        await self.awake()
        if self.is_cut_off and self.chance.random() < 0.5:
            await asyncio.sleep(_GIVES_UP_S)
            await self.awake()
            raise GenericError("the store cannot be reached")

    async def awake(self) -> None:
        """Wait while the process is frozen. CancelledError once it is killed."""
        while self._thawed is not None:
            await self._thawed.wait()
        if self.is_dead:
            raise asyncio.CancelledError

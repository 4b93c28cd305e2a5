"""A process of a simulated farm: it has a clock and chance of its own, and can be killed, frozen and cut off."""

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
"""The time of day at which histories begin, in seconds since 1970."""
_MOST_DELAY_S: Final = 0.02
_SLOW_S: Final = 2.0
_GIVES_UP_S: Final = 1.0

current: Final[ContextVar[Process | None]] = ContextVar("process", default=None)


class Process(Clock):
    """Runs coroutines that go by its clock, which is `skew_s` ahead of that of others, and by `chance`."""

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
        """What comes of this in the process."""
        return self._context.run(what)

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Have the process do this."""
        return self._loop.create_task(work, context=self._context)

    def has(self, task: asyncio.Task[Any]) -> None:
        """A task of the process, made by itself."""
        self._tasks.append(task)

    def kill(self) -> None:
        """From now on nothing of it reaches the store, whatever its tasks have begun, or do about their end."""
        self.is_dead = True
        self.ended.set()
        self.thaw()
        for task in self._tasks:
            task.cancel()

    def freeze(self) -> None:
        """Stop; time goes on."""
        if self._thawed is None:
            self._thawed = asyncio.Event()

    def thaw(self) -> None:
        """Go on, where it had stopped."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    async def reach(self, *, is_there: bool) -> None:
        """Take the way to the store, or back from there once the request `is_there`."""
        delay_s = self.chance.random() * _MOST_DELAY_S
        if self.is_slow and self.chance.random() < 0.3:
            delay_s = self.chance.random() * _SLOW_S
        # A request may take its time before it is done, after that, both times, or never.
        if is_there == (self.chance.random() < 0.5):
            await asyncio.sleep(delay_s)
        await self.awake()
        if self.is_cut_off and self.chance.random() < 0.5:
            await asyncio.sleep(_GIVES_UP_S)
            await self.awake()
            raise GenericError("the store cannot be reached")

    async def awake(self) -> None:
        """Wait while it is frozen. What is killed goes no further."""
        while self._thawed is not None:
            await self._thawed.wait()
        if self.is_dead:
            raise asyncio.CancelledError

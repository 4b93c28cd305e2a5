"""What the process that has read a request is told of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from service import clock
from service.observe.instruments import count_cache
from service.sandbox.frames import Message
from service.wire.hit_reasons import SAME_ACTION
from tensorkiln.errors import InfrastructureError, RateLimitedError

from .compiles import Compiled, Compiles, Look
from .order import Rendered, Tell, Wanted
from .task_answers import Prepared, asked_nothing, believed, rendered

LOOK_S: Final = 0.25
"""So long the store may take; then the process ends without an answer, which another writes when all is there."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The programs that a request asks for, and the answers that they make."""

    compiled: Sequence[Compiled]
    answers: Rendered


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, and what a look at the store has found of it."""

    prepared: Prepared
    wanted: Sequence[Wanted]
    looks: Sequence[Look | None]

    @property
    def stored(self) -> Sequence[Compiled]:
        """All programs, if the look has found them all, and none otherwise."""
        found = [look.found for look in self.looks if look is not None and isinstance(look.found, Compiled)]
        return found if len(found) == len(self.looks) else ()

    async def programs(self, compiles: Compiles, tell: Tell) -> Sequence[Compiled]:
        """All programs. `tell` gets the news of each, with its position as `target`.

        When one fails for good, the others are given up: nobody waits for them any more. What is to be asked for again
        finds more of them.
        """

        def telling(target: int) -> Tell:
            return lambda news: tell({**news, "target": target})

        found = zip(self.wanted, self.looks, strict=True)
        making = (compiles.program(each, telling(target), look) for target, (each, look) in enumerate(found))
        tasks = [asyncio.create_task(each) for each in making]
        try:
            return await asyncio.gather(*tasks)
        except (InfrastructureError, RateLimitedError):
            raise
        except BaseException:
            while tasks:
                tasks.pop().cancel()
            raise
        finally:
            # An error of theirs has this frame in its traceback: it would hold itself, and the graph.
            tasks.clear()


class Lookup:
    """The service's part in a task `answer`, about actions that have `salt`, of which `compiles` knows the programs."""

    def __init__(self, salt: str, compiles: Compiles) -> None:
        self._salt = salt
        self._compiles = compiles
        self._asked: Asked | None = None
        self.waited_s = 0.0
        """For so long the task has waited for the service."""

    async def respond(self, question: Message) -> Message:
        """The programs that the task asks for, if all are there. TensorkilnError when it or the store is not right."""
        begin = clock.monotonic()
        try:
            return await self._respond(question)
        finally:
            self.waited_s += clock.monotonic() - begin

    async def _respond(self, question: Message) -> Message:
        prepared = await believed(partial(Prepared.from_message, salt=self._salt), question)
        wanted = wanted_of(prepared)
        self._asked = asked = Asked(prepared, wanted, (None,) * len(wanted))
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                looks = await asyncio.gather(*map(self._compiles.look, wanted))
            self._asked = asked = Asked(prepared, wanted, looks)
        return to_render(asked.stored)

    def read(self, answer: Message) -> tuple[Asked, Answered | None]:
        """What the request asks for, and its answer if that was there. CrashedError when the task is not right."""
        if self._asked is None:
            raise asked_nothing()
        stored = self._asked.stored
        if not stored:
            return self._asked, None
        answers = rendered(answer, self._asked.prepared.renaming)
        for _ in stored:
            count_cache(SAME_ACTION.status, SAME_ACTION.reason)
        return self._asked, Answered(stored, answers)


def to_render(compiled: Sequence[Compiled]) -> Message:
    """Programs as the task `render` takes them, less the renaming."""
    parts = {f"program:{position}": each.program for position, each in enumerate(compiled)}
    header = {
        "caches": [dict(each.cache) for each in compiled],
        "seconds": [dict(each.entry.seconds) for each in compiled],
        "stages": [dict(each.entry.stages) for each in compiled],
    }
    return Message(header, parts)


def wanted_of(prepared: Prepared) -> list[Wanted]:
    """What a request wants for each of its targets."""
    graph, renaming, with_dumps = prepared.graph, prepared.renaming, prepared.dump_stages
    alone = renaming if len(prepared.actions) == 1 else None
    return [Wanted(action, graph, with_dumps, alone) for action in prepared.actions]

"""A single process in simulated time, for tests of code that depends on time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from service.store.location import ObjectStore

from .loop import SimulatedLoop
from .process import Process
from .store import Contents


def in_simulated_time(work: Callable[[ObjectStore, Contents], Coroutine[Any, Any, None]]) -> None:
    """Run `work` on an in-memory store and its contents, with one simulated clock, without waiting."""

    async def run() -> None:
        process = Process("alone", "", Random(1))
        contents = Contents(lambda *_: None)
        await process.run(work(contents.of(process), contents))

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(run())

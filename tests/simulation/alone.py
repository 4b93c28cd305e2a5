"""One process in simulated time, for tests of what it does about time that passes."""

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
    """Run `work` with a store and what is in it. No time is waited for, and everything goes by the same clock."""

    async def run() -> None:
        process = Process("alone", "", Random(1))
        contents = Contents(lambda *_: None)
        await process.run(work(contents.of(process), contents))

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(run())

"""A sandbox for one test, and how often a test repeats what it measures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from service.sandbox import landlock
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import TensorkilnError
from tests.faults.size import sized
from tests.service.failing import INSTALL

RUNS: Final = sized(3, 100)
LIMITS: Final = Limits(deadline_s=10.0, memory_mib=256, file_mib=4)

needs_landlock: Final = pytest.mark.skipif(
    landlock.support().abi == 0, reason=landlock.support().reason or "the kernel has Landlock"
)


def in_sandbox(test: Callable[[Sandbox], Awaitable[None]], *, warm_ups: Sequence[str] = (), **options: Any) -> None:
    """Run a test with a started sandbox that has a job which fails as it is told, and these `options`."""

    async def run() -> None:
        sandbox = Sandbox((*warm_ups, INSTALL), **options)
        try:
            await sandbox.start()
            await test(sandbox)
        finally:
            await sandbox.close()

    asyncio.run(run())


async def ping(sandbox: Sandbox) -> None:
    """See that a job runs."""
    assert await sandbox.run("ping", Message({"x": 1}), LIMITS) == Message({"x": 1})


async def failure(
    sandbox: Sandbox, how: str, limits: Limits = LIMITS, on_stage: Callable[[str], None] = lambda _: None
) -> TensorkilnError:
    """The error of a job that fails so."""
    with pytest.raises(TensorkilnError) as caught:
        await sandbox.run("fail", Message({"how": how}), limits, on_stage)
    return caught.value


WALLS: Final = [
    pytest.param(Wall.PROCESS, Level.PROCESS, id="process"),
    pytest.param(Wall.AUTO, Level.LANDLOCK, id="landlock+seccomp", marks=needs_landlock),
]

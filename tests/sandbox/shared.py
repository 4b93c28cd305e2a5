"""Sandboxes that tests use one after the other, as a fork server takes longer to start than most of them take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from service.sandbox.levels import Wall
from service.sandbox.sandbox import Sandbox
from tests.service.failing import INSTALL


class Boxes:
    """Started sandboxes with a job that fails as it is told, one for each wall and list of warm-ups, in one loop.

    They are for tests that leave the fork server as it is.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._made: dict[tuple[Wall, tuple[str, ...]], Sandbox] = {}

    def run(
        self, test: Callable[[Sandbox], Awaitable[None]], *, wall: Wall = Wall.AUTO, warm_ups: Sequence[str] = ()
    ) -> None:
        """Run a test with the sandbox of these options."""
        self._runner.run(self._run(test, wall, tuple(warm_ups)))

    def close(self) -> None:
        """End all of them."""
        with self._runner:
            self._runner.run(self._close())

    async def _run(self, test: Callable[[Sandbox], Awaitable[None]], wall: Wall, warm_ups: tuple[str, ...]) -> None:
        if (wall, warm_ups) not in self._made:
            self._made[wall, warm_ups] = Sandbox((*warm_ups, INSTALL), wall=wall)
        sandbox = self._made[wall, warm_ups]
        await sandbox.start()
        await test(sandbox)

    async def _close(self) -> None:
        await asyncio.gather(*(sandbox.close() for sandbox in self._made.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

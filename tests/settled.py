"""Tasks of one event loop that wait for nothing but one another."""

from __future__ import annotations

import asyncio
from typing import Final

_TURNS: Final = 5


async def settled() -> None:
    """Let each go on until it waits for something else."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)

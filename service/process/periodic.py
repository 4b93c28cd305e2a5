"""Periodic tasks of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from tensorkiln.errors import TensorkilnError

_PAUSE_S: Final = 1.0
"""Least seconds between a failed round and the next."""

_log = structlog.get_logger()


async def periodically(
    what: str, every_s: float, once: Callable[[], Awaitable[None]], *, at_once: bool = False
) -> None:
    """Run `once` every `every_s` seconds, the first time after `every_s` seconds unless `at_once`.

    A failed round is logged, and the next one follows.
    """
    await asyncio.sleep(0 if at_once else every_s)
    while True:
        (error,) = await asyncio.gather(once(), return_exceptions=True)
        if isinstance(error, TensorkilnError):
            _log.error("a periodic task of the service failed", what=what, reason=error.message)
        elif error is not None:
            _log.error("a periodic task of the service failed", what=what, exc_info=error)
        await asyncio.sleep(every_s if error is None else max(every_s, _PAUSE_S))

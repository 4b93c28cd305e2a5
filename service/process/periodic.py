"""What a service does again and again, as long as it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from tensorkiln.errors import TensorkilnError

_PAUSE_S: Final = 1.0
"""What fails is not done again sooner."""

_log = structlog.get_logger()


async def periodically(
    what: str, every_s: float, once: Callable[[], Awaitable[None]], *, at_once: bool = False
) -> None:
    """Do `once` every so many seconds, the first time after as many unless `at_once`.

    A round that fails is logged, and not the last.
    """
    await asyncio.sleep(0 if at_once else every_s)
    while True:
        (error,) = await asyncio.gather(once(), return_exceptions=True)
        if isinstance(error, TensorkilnError):
            _log.error("a periodic task of the service failed", what=what, reason=error.message)
        elif error is not None:
            _log.error("a periodic task of the service failed", what=what, exc_info=error)
        await asyncio.sleep(every_s if error is None else max(every_s, _PAUSE_S))

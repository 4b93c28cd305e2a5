"""Whether a service did not start for something that an operator can do something about, or by a defect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog
from fastapi import FastAPI

from tensorkiln.errors import TensorkilnError

_log = structlog.get_logger()


class Start:
    """The start of `app`, as long as it takes. `failure` is what an operator can do something about."""

    def __init__(self, app: FastAPI) -> None:
        self.failure: TensorkilnError | OSError | None = None
        self._lifespan = app.router.lifespan_context
        app.router.lifespan_context = self._watched
        # uvicorn logs a start that fails with its traceback.
        logging.getLogger("uvicorn.error").addFilter(lambda _: self.failure is None)

    @asynccontextmanager
    async def _watched(self, app: FastAPI) -> AsyncGenerator[Any]:
        has_begun = False
        try:
            async with self._lifespan(app) as state:
                has_begun = True
                yield state
        except (TensorkilnError, OSError) as error:
            if not has_begun:
                self.failure = error
            raise

    def watch(self, verdict: asyncio.Future[None], leave: Callable[[], None]) -> None:
        """Have the application `leave` when the `verdict` about its start, which may come after it, is a failure."""

        def look(ended: asyncio.Future[None]) -> None:
            error = None if ended.cancelled() else ended.exception()
            if isinstance(error, TensorkilnError):
                self.failure = error
            elif error is not None:
                _log.error("the service did not start because of a defect", exc_info=error)
            if error is not None:
                leave()

        verdict.add_done_callback(look)

"""Why a service did not start: in a line what an operator can do something about, a defect with its traceback."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from pydantic import ValidationError
from pydantic_settings import SettingsError

from tensorkiln.errors import TensorkilnError

_FIELD = re.compile(r'field "(\w+)"')


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


def told(error: TensorkilnError | OSError | SettingsError | ValidationError) -> list[str]:
    """A line for each thing that is wrong."""
    if isinstance(error, ValidationError):
        return [_setting(problem["loc"], problem["msg"]) for problem in error.errors(include_url=False)]
    if isinstance(error, SettingsError):
        field = _FIELD.search(str(error))
        return [_setting([field[1] if field else "*"], "It is not the JSON that it has to be")]
    if isinstance(error, OSError):
        return [f"The service cannot start: {' '.join(str(error).split())}."]
    return [" ".join(str(error).split())]


def _setting(where: Any, what: str) -> str:
    return f"KILN_{'_'.join(str(step) for step in where).upper()}: {what}; docs/operations.md says what it takes."

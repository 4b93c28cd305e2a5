"""What is other than in production while histories run: the build of a process, and how often it looks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final
from unittest.mock import patch

import structlog

from service.engine.farm.engine import LOOK_EVERY_S
from tensorkiln.compiler_build import Build

from .process import current

_ASK_FOR_BUILD: Final = (
    "service.engine.farm.statements",
    "service.engine.farm.roster",
    "service.engine.local",
    "service.worker.bench",
)


def build() -> Build:
    """That of the process that asks."""
    process = current.get()
    assert process is not None
    return Build(process.build, {})


@contextmanager
def simulated() -> Generator[None]:
    """Have histories run inside the block. Nothing is logged there."""
    with ExitStack() as stack:
        for module in _ASK_FOR_BUILD:
            stack.enter_context(patch(f"{module}.build", build))
        stack.enter_context(patch("service.worker.bench.getpid", lambda: 1))
        # Who looks rarely meets everything that there is to meet, in fewer steps.
        stack.enter_context(patch.dict(LOOK_EVERY_S, {False: 1.0}))
        stack.enter_context(patch("service.engine.local._LOOK_EVERY_S", 0.5))
        before = structlog.get_config()
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50), cache_logger_on_first_use=False)
        try:
            yield
        finally:
            structlog.configure(**before)

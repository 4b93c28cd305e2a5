"""Patches of production code for histories: the build of a process, and polling intervals."""

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
    "service.engine.farm.ledger",
    "service.engine.local",
    "service.worker.bench",
)


def build() -> Build:
    """The build of the calling process."""
    process = current.get()
    assert process is not None
    return Build(process.build, {})


@contextmanager
def simulated() -> Generator[None]:
    """Apply the patches inside the block, and disable logs."""
    with ExitStack() as stack:
        for module in _ASK_FOR_BUILD:
            stack.enter_context(patch(f"{module}.build", build))
        stack.enter_context(patch("service.worker.bench.getpid", lambda: 1))
        # Longer polling intervals reach the same states in fewer steps.
        stack.enter_context(patch.dict(LOOK_EVERY_S, {False: 1.0}))
        stack.enter_context(patch("service.engine.local._LOOK_EVERY_S", 0.5))
        before = structlog.get_config()
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50), cache_logger_on_first_use=False)
        try:
            yield
        finally:
            structlog.configure(**before)

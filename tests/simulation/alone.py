"""A single process in simulated time, for tests of code that depends on time."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from service.clock import given
from service.store.location import ObjectStore

from .loop import SimulatedLoop
from .process import Process, current
from .store import Contents

SIMULATED: Final[tuple[str, dict[str, Any]]] = ("asyncio", {"loop_factory": SimulatedLoop})
"""Of tests in simulated time: nothing is waited for."""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """What a module imports whose tests are in simulated time."""
    return SIMULATED


def alone() -> tuple[ObjectStore, Contents]:
    """Make the task that calls this a process, by the clock of its simulated loop: an in-memory store, its contents."""
    process = Process("alone", "", Random(1))
    given.set(process)
    current.set(process)
    contents = Contents(lambda *_: None)
    return contents.of(process), contents

"""Faults at two sizes: one that fits a pipeline, and with KILN_FAULTS=full the one that the figures are stated for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.store.claims import BEAT_S
from tests.farm.topology import Farm
from tests.faults.size import FULL, sized

NOTICE_S = sized(6.0, 3.0)
"""What a service that is stopped leaves a balancer to notice."""


@pytest.fixture(scope="session")
def size() -> Callable[[int, int], int]:
    """Of a number for a pipeline and the full one, that which is asked for."""
    return lambda small, full: full if FULL else small


@pytest.fixture(scope="package")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Two services and four workers, or eight, for tests that leave as many as there were."""
    home, workers = tmp_path_factory.mktemp("farm"), sized(4, 8)
    settings: dict[str, Any] = {"fails": True, "queue": 4000, "queue_age_s": 600, "shutdown_notice_s": NOTICE_S}
    with Farm(home, workers=workers, anew=FULL, **settings) as running:
        # Of a file that is being written the name has a # in it.
        while sum("#" not in path.name for path in running.store.glob("members/*/worker.*")) < workers:
            time.sleep(0.05)
        time.sleep(2 * BEAT_S)  # until the services have seen all of them
        yield running

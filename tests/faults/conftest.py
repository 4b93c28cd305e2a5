"""Faults at two sizes: one that fits a pipeline, and with KILN_FAULTS=full the one that the figures are stated for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.engine.farm.roster import SIGN_S
from tests.farm.rabbit import missing
from tests.farm.topology import Farm
from tests.faults.size import FULL, sized

REQUIRED = "KILN_REQUIRE_BROKERS"
NOTICE_S = sized(6.0, 3.0)
"""What a service that is stopped leaves a balancer to notice."""


@pytest.fixture(scope="session")
def size() -> Callable[[int, int], int]:
    """Of a number for a pipeline and the full one, that which is asked for."""
    return lambda small, full: full if FULL else small


def require_broker() -> None:
    """Skip where there is no broker, or fail where there has to be one."""
    lacking = missing()
    if lacking and os.environ.get(REQUIRED) == "1":
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """RabbitMQ, two services and four workers, or eight, for tests that leave as many as there were."""
    require_broker()
    home, workers = tmp_path_factory.mktemp("farm"), sized(4, 8)
    settings: dict[str, Any] = {"test_hooks": 1, "queue": 4000, "queue_age_s": 600, "shutdown_notice_s": NOTICE_S}
    # All that the tests ask for is at the broker, as hundreds of orders are to be there when it goes.
    settings |= {"farm_width": 600, "farm_ahead": 10_000}
    with Farm(home, workers=workers, **settings) as running:
        # Of a file that is being written the name has a # in it.
        while sum("#" not in path.name for path in running.store.glob("members/*/worker.*")) < workers:
            time.sleep(0.05)
        time.sleep(2 * SIGN_S)  # until the services have seen all of them
        yield running

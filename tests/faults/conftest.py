"""Faults at two sizes: one that fits a pipeline, and with KILN_FAULTS=full the one that the figures are stated for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.farm.brokers import missing
from tests.farm.topology import Farm
from tests.faults.size import sized

REQUIRED = "KILN_REQUIRE_BROKERS"
FULL: Final = os.environ.get("KILN_FAULTS") == "full"
_FULL_TIMEOUT_S: Final = 3600


@pytest.fixture(scope="session")
def size() -> Callable[[int, int], int]:
    """Of a number for a pipeline and the full one, that which is asked for."""
    return lambda small, full: full if FULL else small


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give faults at full size the time that they take."""
    if FULL:
        for item in items:
            if "faults" in item.path.parts:
                item.add_marker(pytest.mark.timeout(_FULL_TIMEOUT_S))


def require(kind: str) -> None:
    """Skip where there is no broker of this kind, or fail where there has to be one."""
    lacking = missing(kind)
    if lacking and os.environ.get(REQUIRED) == "1":
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """RabbitMQ, two services and four workers, or eight, for tests that leave as many as there were."""
    require("rabbit")
    home, workers = tmp_path_factory.mktemp("farm"), sized(4, 8)
    with Farm(home, workers=workers, test_hooks=1, queue=4000, farm_width=600, queue_age_s=600) as running:
        yield running

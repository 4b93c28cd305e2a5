from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.farm.brokers import missing
from tests.farm.topology import Farm

REQUIRED = "KILN_REQUIRE_BROKERS"


def require(kind: str) -> None:
    """Skip where there is no broker of this kind, or fail where there has to be one."""
    lacking = missing(kind)
    if lacking and os.environ.get(REQUIRED) == "1":
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """RabbitMQ, two services and four workers, for tests that leave as many as there were."""
    require("rabbit")
    with Farm(tmp_path_factory.mktemp("farm"), test_hooks=1, queue=4000, farm_width=600, queue_age_s=600) as running:
        yield running

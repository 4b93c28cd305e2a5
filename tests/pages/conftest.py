from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chromium import chromium
from tests.service.server import Server


@pytest.fixture(scope="package")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that asks for no credential; its compiler fails as graphs say."""
    with Server(tmp_path_factory.mktemp("pages"), fails=True) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started

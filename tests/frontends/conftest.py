"""One embedded service for all that is imported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorkiln import Client
from tests.service.forked import forked_embedding


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an embedded service with a home of its own."""
    with forked_embedding(), Client(cache_dir=tmp_path_factory.mktemp("kiln-home")) as client:
        yield client

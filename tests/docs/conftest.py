from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.server import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that the documents and the examples share."""
    with Server(tmp_path_factory.mktemp("docs") / "home") as server:
        yield server

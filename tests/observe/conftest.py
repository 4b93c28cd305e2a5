from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.identity.guarded import Guarded
from tests.service.server import TIGHT, Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose compiler fails as graphs say, with tight limits, for tests that look at differences."""
    with Server(tmp_path_factory.mktemp("seen"), fails=True, **TIGHT) as running:
        yield running


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials."""
    with Guarded(tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture(scope="package")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose compiler fails as graphs say. It compiles one graph, for tests of the xdist group of this name.

    Its store has a record that services once wrote.
    """
    home = tmp_path_factory.mktemp("narrow")
    (home / "store").mkdir()
    (home / "store" / "canary").write_bytes(b"{}")
    with Server(home, fails=True, concurrency=1, compile_deadline_s=3, ready_queue_age_s=0.3) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty directory for a service of one's own."""
    return tmp_path / "kiln"

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.identity.guarded import Guarded
from tests.service.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with test hooks and tight limits, for tests that look at differences."""
    tight = {"compile_deadline_s": 5, "compile_memory_mib": 256, "compile_file_mib": 8, "compile_output_mib": 32}
    with Server(tmp_path_factory.mktemp("seen"), test_hooks=1, **tight) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials."""
    with Guarded(tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty directory for a service of one's own."""
    return tmp_path / "kiln"

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.identity.guarded import Guarded
from tests.service.server import Server


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials, for tests that use tenants of their own."""
    with Guarded(tmp_path_factory.mktemp("guarded"), fails=True, compile_deadline_s=20) as running:
        yield running


@pytest.fixture(scope="package")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that has no keys and asks for none, for tests that compile graphs of their own."""
    with Server(tmp_path_factory.mktemp("unguarded"), fails=True) as running:
        yield running


@pytest.fixture(scope="package")
def switched_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that has keys and is told to ask for none."""
    with Guarded(tmp_path_factory.mktemp("off"), auth="off") as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty directory for a service of one's own."""
    return tmp_path / "kiln"

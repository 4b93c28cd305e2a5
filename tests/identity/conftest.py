from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.identity.guarded import Guarded


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials, for tests that use tenants of their own."""
    with Guarded(tmp_path_factory.mktemp("guarded"), test_hooks=1, compile_deadline_s=20) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty directory for a service of one's own."""
    return tmp_path / "kiln"

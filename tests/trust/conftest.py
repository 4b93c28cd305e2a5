from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorkiln import Graph
from tests.service.bodies import graph
from tests.service.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that no test harms."""
    with Server(tmp_path_factory.mktemp("kiln")) as running:
        yield running


@pytest.fixture
def small() -> Graph:
    """exp2(x) and neg(x) of x: float32[4, n]; 1 <= n <= 64."""
    return Graph.model_validate(graph())


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KILN_URL", "KILN_HOME", "KILN_CACHE_DIR", "KILN_OFFLINE", "KILN_TRUSTED_KEYS", "KILN_MIN_ISOLATION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KILN_CONFIG_DIR", str(tmp_path / "config"))

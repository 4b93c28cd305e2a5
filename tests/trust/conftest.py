from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tensorkiln import Graph
from tests.forked import Forked
from tests.service.bodies import graph
from tests.service.server import Server
from tests.trust.stores import stocked

__all__ = ["stocked"]

HERE = Path(__file__).parent
Ran: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
Scrubbed: TypeAlias = Callable[..., "tuple[int, dict[str, Any]]"]
AtOnce: TypeAlias = Callable[..., list[str]]


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One start of the service is enough: those who use it are quick."""
    for item in items:
        if item.path.parent == HERE and "server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("trust server"))


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("kiln")) as running:
        yield running


@pytest.fixture(scope="package")
def forked() -> Iterator[Forked]:
    """Runs the commands of a store and of its keys, and scripts about them, without loading these each time."""
    with Forked("service.upkeep.scrub", "service.trust.__main__", "tests.trust.stores") as forked:
        yield forked


@pytest.fixture
def ran(forked: Forked, tmp_path: Path) -> Ran:
    """Runs a module with these arguments and variables of the environment."""

    def run(module: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return forked.run(module, *arguments, cwd=tmp_path, env={**os.environ, **variables})

    return run


@pytest.fixture
def scrubbed(ran: Ran, tmp_path: Path) -> Scrubbed:
    """Scrubs the store of the test's directory: the exit status, and the report."""

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        ended = ran("service.upkeep.scrub", *arguments, KILN_HOME=str(tmp_path))
        return ended.returncode, json.loads(ended.stdout)

    return run


@pytest.fixture
def at_once(forked: Forked, tmp_path: Path) -> AtOnce:
    """What so many processes print that run a script, and all begin at one moment; each has to end with 0."""

    def run(script: str, count: int, *arguments: str) -> list[str]:
        (tmp_path / "at_once.py").write_text(f"import os\nos.read(0, 1)\n{script}")
        begin, beginning = os.pipe()
        running = [
            forked.start("at_once", *arguments, cwd=tmp_path, env=os.environ, stderr=2, stdin=begin)
            for _ in range(count)
        ]
        os.write(beginning, bytes(count))
        printed = [process.stdout for process in running if process.stdout is not None]
        said = [stdout.read() for stdout in printed]
        assert [process.wait(120) for process in running] == [0] * count
        for each in printed:
            each.close()
        os.close(begin)
        os.close(beginning)
        return said

    return run


@pytest.fixture
def small() -> Graph:
    """exp2(x) and neg(x) of x: float32[4, n]; 1 <= n <= 64."""
    return Graph.model_validate(graph())


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KILN_URL", "KILN_HOME", "KILN_CACHE_DIR", "KILN_OFFLINE", "KILN_TRUSTED_KEYS", "KILN_MIN_ISOLATION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KILN_CONFIG_DIR", str(tmp_path / "config"))

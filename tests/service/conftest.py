from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.identity.guarded import Guarded
from tests.observe.figures import Figures
from tests.service.server import TIGHT, Server
from tests.trust.stores import stocked

__all__ = ["stocked"]

# Tests that use the same of these services, `server` aside, are in one xdist_group: it is started once.


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose compiler fails as graphs say, with tight limits, for tests that leave it as it was.

    It is started anew, to load what a service loads, whatever it is asked for. On a machine that runs other tests, a
    compile takes several times what it takes on one that is idle.
    """
    home = tmp_path_factory.mktemp("kiln")
    with Server(home, fails=True, anew=True, **TIGHT) as running:
        yield running


@pytest.fixture(scope="package")
def _pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    home = tmp_path_factory.mktemp("pair")
    settings: dict[str, Any] = {"fails": True, "concurrency": 8, "compile_deadline_s": 600}
    with Server(home / "one", **settings) as one, Server(home / "two", **settings, **place(one)) as two:
        yield one, two


@pytest.fixture
def pair(_pair: tuple[Server, Server]) -> tuple[Server, Server]:
    """Two services, whose compilers fail as graphs say, on one store, which let a compile take its time."""
    for each in _pair:
        idle(each)
    return _pair


@pytest.fixture
def patient(pair: tuple[Server, Server]) -> Server:
    """The first of the `pair`."""
    return pair[0]


@pytest.fixture(scope="package")
def unusual(tmp_path_factory: pytest.TempPathFactory, _pair: tuple[Server, Server]) -> Iterator[Server]:
    """A service on the store of the `pair` with a salt, a short grace, a misspelt setting and the compiler as it is."""
    settings: dict[str, Any] = {"salt": "a secret", "shutdown_grace_s": 199, "queu": "hidden", "queue": 5}
    # Forked, it would not have its own environment where the kernel shows that.
    with Server(tmp_path_factory.mktemp("unusual"), anew=True, **settings, **place(_pair[0])) as running:
        yield running


@pytest.fixture(scope="package")
def _narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("narrow")
    with Server(home, fails=True, concurrency=1, queue=0, compile_deadline_s=600) as running:
        yield running


@pytest.fixture
def narrow(_narrow: Server) -> Server:
    """A service whose compiler fails as graphs say. It compiles one graph, and lets no other wait."""
    idle(_narrow)
    return _narrow


@pytest.fixture(scope="package")
def _short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("short"), fails=True, concurrency=1, queue=1) as running:
        yield running


@pytest.fixture
def short(_short: Server) -> Server:
    """A service whose compiler fails as graphs say. It compiles one graph, and lets one other wait."""
    idle(_short)
    return _short


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that asks for credentials and takes three requests of a tenant at once."""
    with Guarded(tmp_path_factory.mktemp("guarded"), fails=True, tenant_in_flight=3) as running:
        yield running


def place(server: Server) -> dict[str, Any]:
    """The settings of another service on the store of this one."""
    return {name: server.home / name for name in ("store", "keys")}


def idle(server: Server) -> None:
    """Come back when neither a job nor a request is left of those who had the service before."""
    while server.jobs() or Figures(server)("kiln_http_requests_in_flight") > 1:  # one is this question
        time.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty directory for a service of one's own."""
    return tmp_path / "kiln"

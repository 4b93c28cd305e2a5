from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts each service of a name once; it comes back when nothing is under way there."""
    with ExitStack() as running:
        made: dict[str, Server] = {}

        def started(name: str, **settings: Any) -> Server:
            if name not in made:
                server = Server(tmp_path_factory.mktemp(name), fails=True, **settings)
                made[name] = running.enter_context(server)
            idle(made[name])
            return made[name]

        yield started


@pytest.fixture
def patient(_started: Callable[..., Server]) -> Server:
    """The first of the `pair`."""
    return _started("patient", concurrency=8, compile_deadline_s=600)


@pytest.fixture
def pair(patient: Server, _started: Callable[..., Server]) -> tuple[Server, Server]:
    """Two services, whose compilers fail as graphs say, on one store, which let a compile take its time."""
    return patient, _started("other", concurrency=8, compile_deadline_s=600, **place(patient))


@pytest.fixture(scope="package")
def unusual(tmp_path_factory: pytest.TempPathFactory, _started: Callable[..., Server]) -> Iterator[Server]:
    """A service on the store of the `pair` with a salt, a short grace, a misspelt setting and the compiler as it is."""
    settings: dict[str, Any] = {"salt": "a secret", "shutdown_grace_s": 199, "queu": "hidden", "queue": 5}
    shared = place(_started("patient", concurrency=8, compile_deadline_s=600))
    # Forked, it would not have its own environment where the kernel shows that.
    with Server(tmp_path_factory.mktemp("unusual"), anew=True, **settings, **shared) as running:
        yield running


@pytest.fixture
def narrow(_started: Callable[..., Server]) -> Server:
    """A service whose compiler fails as graphs say. It compiles one graph, and lets no other wait."""
    return _started("narrow", concurrency=1, queue=0, compile_deadline_s=600)


@pytest.fixture
def short(_started: Callable[..., Server]) -> Server:
    """A service whose compiler fails as graphs say. It compiles one graph, and lets one other wait."""
    return _started("short", concurrency=1, queue=1)


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

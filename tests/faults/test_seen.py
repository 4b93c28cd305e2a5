"""What breaks is seen within 15 s, by probes and by `kiln doctor`, and so is its return."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tensorkiln.cli.app import app
from tests.farm.topology import Farm
from tests.faults.requests import accept, body, claimers, ended
from tests.observe.readiness import RED_WITHIN_S, await_green, await_red, failed, without_fork_server
from tests.service.bodies import compile_body, encoded, graph
from tests.service.forked import forked_services
from tests.service.server import Server


@contextmanager
def without_store(home: Path) -> Any:
    """A file is where the store was."""
    store, aside = home / "store", home / "aside"
    store.rename(aside)
    store.write_text("")
    try:
        yield
    finally:
        store.unlink()
        aside.rename(store)


Break = Callable[[Server], AbstractContextManager[Any]]
BREAKS: dict[str, tuple[str, Break]] = {
    "canary": ("a small graph is not compiled", lambda server: without_fork_server(server.pid)),
    "store": (
        "the store refuses writes (infra.unavailable)",
        lambda server: without_store(server.home),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that is whole again after each test."""
    with Server(tmp_path_factory.mktemp("kiln"), fails=True) as running:
        yield running


@pytest.mark.xdist_group("seen")
@pytest.mark.parametrize("check", BREAKS)
def test_faults_of_a_service_are_reported(server: Server, tmp_path: Path, check: str) -> None:
    logged = len(server.log())
    assert failed(server.url) == {}
    assert doctor(server.url, tmp_path)[0] == 0
    reason, break_ = BREAKS[check]
    with break_(server):
        assert reason in see(server.url, check)
        assert str(server.home) not in server.http.get("/readyz").text
        assert check != "store" or str(server.home) in server.log()[logged:]
        status, found = command(server.url, tmp_path)
        assert status == 1
        assert f"{check}: " in found
    await_green(server.url)
    assert doctor(server.url, tmp_path)[0] == 0
    assert server.compile(encoded(compile_body(graph(rows=1 + list(BREAKS).index(check))))).status_code == 200


@pytest.fixture(scope="module")
def small_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """One service and one worker."""
    with Farm(tmp_path_factory.mktemp("small"), services=1, workers=1, fails=True) as running:
        yield running


@contextmanager
def without_worker(farm: Farm) -> Any:
    (worker,) = farm.workers
    worker.kill()
    try:
        yield
    finally:
        worker.start()


@contextmanager
def without_compiler(farm: Farm) -> Any:
    """The worker lives, and its fork server does not for long."""
    with without_fork_server(farm.workers[0].pid):
        yield


FARM_BREAKS: dict[str, tuple[str, Callable[[Farm], AbstractContextManager[Any]]]] = {
    "worker": ("no worker of the farm is alive", without_worker),
    "compiler": ("none of them compiles", without_compiler),
}


@pytest.mark.xdist_group("farm")
@pytest.mark.parametrize("part", FARM_BREAKS)
def test_faults_of_a_farm_are_reported_and_stop_new_orders(small_farm: Farm, tmp_path: Path, part: str) -> None:
    reason, break_ = FARM_BREAKS[part]
    (url,) = small_farm.urls
    await_green(url)
    assert doctor(url, tmp_path)[0] == 0
    with break_(small_farm):
        see(url, "canary")
        assert reason in failed(url)["canary"]
        status, found = doctor(url, tmp_path)
        assert status == 1
        assert "canary: " in found
        begin = time.time()
        identifier = accept(url, body(30 + [*FARM_BREAKS].index(part)))
        time.sleep(3)
        assert claimers(small_farm, begin) == []
        assert [each for each in small_farm.workers[0].lines("an order ended") if each["at"] > begin] == []
    await_green(url)
    assert doctor(url, tmp_path)[0] == 0
    assert ended([url], identifier)["state"] == "done"
    assert small_farm.services[0].lines("a worker was lost") == []


def see(url: str, check: str) -> str:
    """Wait for a check to fail, and print how long that took; the reason."""
    begin = time.monotonic()
    reason = await_red(url, check)
    took = time.monotonic() - begin
    print(f"{check} was seen to fail after {took:.1f} s of {RED_WITHIN_S:g}")
    return reason


def command(url: str, home: Path) -> tuple[int, str]:
    """The exit status of `kiln doctor`, and what it says of the service's readiness."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    done = forked_services().run("tensorkiln.cli", *asked(url), cwd=Path.cwd(), env={**clean, **own(home)})
    return done.returncode, readiness(done.stdout)


def doctor(url: str, home: Path) -> tuple[int, str]:
    """The same of the command in this process, which has loaded all that it needs."""
    done = CliRunner().invoke(app, asked(url), env=own(home))
    return done.exit_code, readiness(done.stdout)


def asked(url: str) -> list[str]:
    return ["doctor", "--json", "--url", url]


def own(home: Path) -> dict[str, str]:
    """Where a user has what is the user's."""
    return {"KILN_HOME": str(home / "user"), "KILN_CONFIG_DIR": str(home / "config")}


def readiness(printed: str) -> str:
    return next(each["found"] for each in json.loads(printed)["findings"] if each["part"] == "readiness")

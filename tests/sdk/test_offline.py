"""A client that is offline asks no service for anything, and starts none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import AsyncClient, Client
from tensorkiln.embedded import embedded_service
from tensorkiln.errors import NotFoundError
from tests.sdk.conftest import Connect, Kiln
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_compile_all import REPORTS, report, written_graphs
from tests.service.bodies import V3, graph

CALLS: dict[str, Callable[[Any], Any]] = {
    "compile": lambda client: client.compile(graph(), V3),
    "stored": lambda client: client.stored(graph(), V3),
    "explain": lambda client: client.explain(graph(), V3),
    "validate": lambda client: client.validate(graph()),
    "stage": lambda client: client.stage("0" * 64, "parse"),
    "artifact": lambda client: client.artifact("0" * 64),
    "signature": lambda client: client.signature("0" * 64),
    "capabilities": lambda client: client.capabilities(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_that_needs_a_service_is_refused(
    scripted: ScriptedServer, connect: Connect, call: Callable[[Any], Any]
) -> None:
    scripted.answers_with()
    with pytest.raises(NotFoundError, match="offline"):
        call(connect(scripted.url, offline=True))
    assert scripted.received == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_says_whether_it_is_offline(kind: type[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not kind(cache_dir=tmp_path).offline
    monkeypatch.setenv("KILN_OFFLINE", "1")
    assert kind(cache_dir=tmp_path).offline
    assert not kind(cache_dir=tmp_path, offline=False).offline
    assert kind.offline.__doc__ == Client.offline.__doc__


def test_no_service_is_started_for_a_client_that_is_offline(tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path, offline=True) as client, pytest.raises(NotFoundError, match="offline"):
        client.capabilities()
    assert embedded_service(tmp_path, 60.0).pid is None


def test_a_run_over_a_folder_may_be_told_by_the_environment(
    kiln_all: Kiln, scripted: ScriptedServer, tmp_path: Path
) -> None:
    written_graphs(tmp_path / "graphs", ["one"], 4)
    scripted.answers_with()
    done = kiln_all("graphs", "-t", V3, *REPORTS, url=scripted.url, KILN_OFFLINE="1")
    assert done.returncode == 1
    assert report(tmp_path)["totals"]["failed"] == 1
    assert scripted.received == []

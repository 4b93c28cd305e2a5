"""A key that a service without keys ignores: the answer tells it, and a client says it once."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tensorkiln import AsyncClient, Client
from tensorkiln.cli.app import app
from tensorkiln.ignored_key import IGNORED_HEADER, IgnoredKeyWarning
from tests.identity.guarded import GUARDED, UNGUARDED, Guarded
from tests.service.bodies import graph
from tests.service.server import Server

WRONG = "kiln_not_a_key"


@UNGUARDED
def test_an_answer_says_that_the_credential_was_ignored(unguarded: Server) -> None:
    sent = {"Authorization": f"Bearer {WRONG}"}
    for path in ("/whoami", "/capabilities", "/healthz", "/keys", "/programs/00"):
        assert unguarded.http.get(path, headers=sent).headers[IGNORED_HEADER] == "ignored", path
        assert IGNORED_HEADER not in unguarded.http.get(path).headers, path


@GUARDED
def test_one_that_looked_at_it_or_leaves_that_to_a_proxy_says_nothing(guarded: Guarded, switched_off: Guarded) -> None:
    for service in (guarded, switched_off):
        for path in ("/whoami", "/capabilities"):
            answer = service.send(service.key("acme"), "GET", path)
            assert answer.status_code == 200
            assert IGNORED_HEADER not in answer.headers


@UNGUARDED
def test_a_client_says_it_once_at_the_line_of_its_caller(unguarded: Server, tmp_path: Path) -> None:
    with Client(unguarded.url, api_key=WRONG, cache_dir=tmp_path) as client:
        with pytest.warns(IgnoredKeyWarning, match=f"{unguarded.url} has no keys, so it ignores the one") as caught:
            client.compile(graph())
        assert [each.filename for each in caught] == [__file__]
        client.capabilities()
        client.validate(graph())


@UNGUARDED
def test_so_does_an_asynchronous_client(unguarded: Server, tmp_path: Path) -> None:
    async def ask() -> None:
        async with AsyncClient(unguarded.url, api_key=lambda: WRONG, cache_dir=tmp_path) as client:
            with pytest.warns(IgnoredKeyWarning) as caught:
                await client.capabilities()
            assert [each.filename for each in caught] == [__file__]
            await asyncio.gather(client.validate(graph()), client.validate(graph()))

    asyncio.run(ask())


@UNGUARDED
def test_a_client_without_a_key_says_nothing(unguarded: Server, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Client(unguarded.url, cache_dir=tmp_path) as client:
            client.validate(graph())


@UNGUARDED
def test_the_command_says_it_in_a_line(unguarded: Server, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(graph()))
    environment = {"KILN_URL": unguarded.url, "KILN_API_KEY": WRONG, "KILN_HOME": str(tmp_path / "home")}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(app, ["compile", str(tmp_path / "graph.json")], env=environment)
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert line.startswith(f"warning: the service at {unguarded.url} has no keys")
    assert "unset KILN_API_KEY" in line

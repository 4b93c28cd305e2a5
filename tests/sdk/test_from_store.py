"""What is stored and nothing else, for those who must not have anything compiled; and what their keys allow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from service.identity.caller import Scope
from tensorkiln import AsyncClient, Client
from tensorkiln.bundle import read_bundle
from tensorkiln.errors import NotFoundError, UnavailableError
from tests.identity.guarded import Guarded
from tests.sdk.conftest import Kiln
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_compile_all import REPORTS, report, written_graphs
from tests.service.bodies import V3, graph


@pytest.fixture
def worker(guarded: Guarded, tmp_path: Path) -> Iterator[Client]:
    with Client(guarded.url, api_key=guarded.key("acme"), cache_dir=tmp_path / "worker") as client:
        yield client


def is_stored(client: Client, wire: dict[str, Any]) -> bool:
    return client.explain(wire, V3)["actions"][0]["stored"]


def test_a_stored_program_has_the_names_of_the_graph(worker: Client, guarded: Guarded, tmp_path: Path) -> None:
    (made,) = worker.compile_for(graph(rows=141), [V3])
    reader = guarded.key("acme", Scope.CACHE_READ)
    renamed = graph(rows=141, name="mine", symbol="k", first_var=7)
    with Client(guarded.url, api_key=reader, cache_dir=tmp_path / "reader") as client:
        (found,) = client.stored(renamed, V3)
        assert (found.digest, found.name, found.cache.status) == (made.digest, "mine", "hit")
        assert [binding.var for binding in found.inputs] == [7]
        client.load(found)
        with pytest.raises(NotFoundError) as missing:
            client.stored(graph(rows=142), [V3])
        assert missing.value.details["cache"]["status"] == "miss"
    assert not is_stored(worker, graph(rows=142))

    async def again() -> None:
        async with AsyncClient(guarded.url, api_key=reader, cache_dir=tmp_path / "loop") as client:
            assert (await client.stored(renamed, V3))[0].digest == made.digest

    asyncio.run(again())


def test_an_evicted_program_is_not_compiled_again(worker: Client, guarded: Guarded, tmp_path: Path) -> None:
    wire = graph(rows=143)
    (made,) = worker.compile_for(wire, [V3])
    key, asked = guarded.key("acme"), 0

    def token() -> str:
        """Called for each request: the program is gone after the first."""
        nonlocal asked
        asked += 1
        for path in (guarded.home / "store").rglob(f"*{made.digest}*") if asked > 1 else ():
            path.unlink(missing_ok=True)  # that it was compiled is noted for a moment longer
        return key

    with Client(guarded.url, api_key=token, cache_dir=tmp_path / "reader") as client, pytest.raises(NotFoundError):
        client.stored(wire, V3)
    assert asked > 1
    assert not is_stored(worker, wire)


def test_an_answer_for_other_targets_is_no_answer(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with(b'{"actions": []}')
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(UnavailableError, match="for 0 targets"):
        client.stored(graph(), V3)


def test_a_read_only_run_compiles_nothing(kiln_all: Kiln, guarded: Guarded, worker: Client, tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    for name, rows in (("old", 144), ("new", 145)):
        (tmp_path / "graphs" / f"{name}.json").write_text(json.dumps(graph(rows=rows)))
    (made,) = worker.compile_for(graph(rows=144), [V3])
    for key in (guarded.key("acme"), guarded.key("acme", Scope.CACHE_READ)):
        asked = ("graphs", "-t", V3, "--read-only-cache", "--lock", "kiln.lock", *REPORTS)
        done = kiln_all(*asked, url=guarded.url, KILN_API_KEY=key)
        assert done.returncode == 4, done.stderr
        assert f"new for {V3} was not in the cache: " in done.stdout
        totals = report(tmp_path)["totals"]
        assert (totals["ok"], totals["hits"], totals["not cached"], totals["failed"]) == (1, 1, 1, 0)
        manifest = json.loads((tmp_path / "dist" / "manifest.json").read_text())["programs"]
        assert manifest.keys() == {"old"}
        assert read_bundle(tmp_path / "dist" / manifest["old"][V3]["file"]).program.digest == made.digest
        assert json.loads((tmp_path / "kiln.lock").read_text())["graphs"].keys() == {"old"}
        (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
        assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "1")
    assert not is_stored(worker, graph(rows=145))
    worker.compile_for(graph(rows=145), [V3])
    assert kiln_all(*asked, url=guarded.url, KILN_API_KEY=key).returncode == 0


def test_a_key_that_is_refused_says_nothing_of_the_graphs(kiln_all: Kiln, guarded: Guarded, tmp_path: Path) -> None:
    written_graphs(tmp_path / "graphs", ["one"], 131)
    reader = guarded.key("acme", Scope.CACHE_READ)
    for variables, code in (
        ({}, "auth.missing"),
        ({"KILN_API_KEY": "kiln_no"}, "auth.invalid"),
        ({"KILN_API_KEY": reader}, "auth.forbidden"),
    ):
        refused = kiln_all("graphs", "-t", "cpu", *REPORTS, url=guarded.url, **variables)
        assert refused.returncode == 3, refused.stderr
        assert f"error[{code}]" in refused.stderr
        told = report(tmp_path)
        assert (told["exit_code"], told["totals"]["failed"]) == (3, 1)
        (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
        assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert kiln_all("graphs", "-t", "cpu", url=guarded.url, KILN_API_KEY=guarded.key("acme")).returncode == 0

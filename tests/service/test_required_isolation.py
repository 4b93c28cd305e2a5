"""With KILN_REQUIRE_ISOLATION nothing is believed, stated or repeated that was compiled at a weaker level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.engine.engine import Engine
from service.process.memory_limit import MemoryLimit
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING, READING
from service.server.listen import authenticator
from service.settings import Settings
from tests.sandbox.boxes import needs_landlock
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache
from tests.service.test_jobs import ended

BODY = encoded(compile_body(graph("sin")))
# The first is answered as a repeated request, the second by its program.
SPELLINGS = (BODY, BODY + b" ")
WEAK: dict[str, Any] = {"isolation": Wall.PROCESS.value}
ONCE = {"Prefer": "respond-async", "Idempotency-Key": "once"}
STRONG: dict[str, Any] = {"require_isolation": Level.LANDLOCK.value}


@needs_landlock
def test_an_answer_of_weaker_days_is_believed_by_nobody_who_requires_more(tmp_path: Path) -> None:
    """The farm has no worker: what its service answers is what it believes of the store."""
    home = tmp_path / "kiln"
    shared = {name: home / name for name in ("store", "keys", "identity")}
    with Server(home, **WEAK) as server:
        weak = server.compile(BODY).json()
        assert weak["signatures"][0]["record"]["isolation"] == Level.PROCESS
        assert cache(server.compile(BODY)) == ("hit", "same request")
        job = ended(server, server.post("/compile", BODY, **ONCE).json()["id"])
        assert job["signatures"][0]["record"]["isolation"] == Level.PROCESS
    path = f"/programs/{weak['programs'][0]['digest']}"
    farm_settings: dict[str, Any] = {"farm": 1, **STRONG, **shared}
    with Server(tmp_path / "farm", **farm_settings) as farm:
        isolation = farm.http.get("/capabilities").json()["isolation"]
        assert isolation == {"level": Level.LANDLOCK, "mechanisms": [], "shortcomings": []}
        waiting = [farm.post("/compile", body, Prefer="respond-async") for body in SPELLINGS]
        assert [each.status_code for each in waiting] == [202, 202]
        for each in waiting:
            farm.http.delete(each.headers["Location"])
        assert farm.http.get(path).status_code == 404
        with Server(home, **STRONG) as server:
            gone = server.http.get(f"/jobs/{job['id']}")
            assert (gone.status_code, gone.json()["code"]) == (404, "request.not_found")
            assert "the isolation of their compile" in gone.json()["detail"]
            again = server.compile(BODY)
            assert cache(again)[0] == "miss"
            assert again.json()["signatures"][0]["record"]["isolation"] == Level.LANDLOCK
            assert cache(server.compile(BODY)) == ("hit", "same request")
            made = ended(server, server.post("/compile", BODY, **ONCE).json()["id"])
            assert made["id"] != job["id"]
            assert made["signatures"][0]["record"]["isolation"] == Level.LANDLOCK
        assert [farm.compile(body).status_code for body in SPELLINGS] == [200, 200]
        assert farm.http.get(path).status_code == 200
    with Server(home, **WEAK) as server:
        assert cache(server.compile(BODY)) == ("hit", "same request")


async def test_jobs_wait_until_the_level_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[str] = []
    settings = Settings(home=tmp_path)
    reader, compiler = Sandbox((READING,)), Sandbox((COMPILING,))
    engine = Engine(settings, reader, compiler, authenticator(settings).keyring, MemoryLimit(1024))
    take_up = engine.jobs.start

    async def start() -> None:
        known.append(engine.notary.isolation)
        await take_up()

    monkeypatch.setattr(engine.jobs, "start", start)
    try:
        assert [(await engine.start()).level] == known
    finally:
        await engine.close()

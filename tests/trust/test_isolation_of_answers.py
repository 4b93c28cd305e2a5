"""No answer has programs that were compiled with less isolation than the service believes, whatever way it takes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.engine.engine import engine_of
from service.process.memory_limit import MemoryLimit
from service.sandbox.levels import Level
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING, READING
from service.server.listen import authenticator
from service.settings import Settings
from tests.sandbox.boxes import needs_landlock
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server, cache
from tests.service.test_jobs import ended

BODY = encoded(compile_body())
ASYNCHRONOUS = {"Prefer": "respond-async", "Idempotency-Key": "once"}
LANDLOCK = Level.LANDLOCK.value


def levels(answer: Any) -> list[str]:
    """How the programs of an answer were isolated when they were compiled."""
    return [signed["record"]["isolation"] for signed in answer["signatures"]]


def test_no_job_is_taken_up_before_the_level_of_its_compiles_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[str] = []

    async def run() -> str:
        settings = Settings(home=tmp_path)
        engine = engine_of(
            settings, Sandbox((READING,)), Sandbox((COMPILING,)), authenticator(settings).keyring, MemoryLimit(1024)
        )
        take_up = engine.jobs.start

        async def start() -> None:
            known.append(engine.notary.isolation)
            await take_up()

        monkeypatch.setattr(engine.jobs, "start", start)
        try:
            return (await engine.start()).level
        finally:
            await engine.close()

    assert [asyncio.run(run())] == known


@needs_landlock
def test_an_answer_of_less_isolation_is_made_again_whatever_way_it_was_asked_for(tmp_path: Path) -> None:
    with Server(tmp_path / "kiln", isolation="process") as server:
        assert levels(server.compile(BODY).json()) == ["process"]
        assert cache(server.compile(BODY)) == ("hit", "same request")
        job = ended(server, server.post("/compile", BODY, **ASYNCHRONOUS).json()["id"])
        assert levels(job) == ["process"]
    with Server(tmp_path / "kiln", require_isolation=LANDLOCK) as server:
        gone = server.http.get(f"/jobs/{job['id']}")
        assert (gone.status_code, gone.json()["code"]) == (404, "request.not_found")
        assert "the isolation of their compile" in gone.json()["detail"]
        again = ended(server, server.post("/compile", BODY, **ASYNCHRONOUS).json()["id"])
        assert again["id"] != job["id"]
        assert levels(again) == [LANDLOCK]
        assert levels(server.compile(BODY).json()) == [LANDLOCK]

"""No answer has programs that were compiled with less isolation than the service believes, whatever way it takes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from service.engine.engine import Engine
from service.process.memory_limit import MemoryLimit
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING, READING
from service.server.listen import authenticator
from service.settings import Settings


def test_no_job_is_taken_up_before_the_level_of_its_compiles_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[str] = []

    async def run() -> str:
        settings = Settings(home=tmp_path)
        engine = Engine(
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

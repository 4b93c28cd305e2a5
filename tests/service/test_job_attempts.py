"""What ends an accepted job: services and workers that are lost over it, not how often a compile was begun again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from service.body import Body
from service.engine import job_work
from service.engine.job import Job
from service.engine.job_work import MAX_ATTEMPTS, Tell
from service.identity.caller import LOCAL, acting_as
from tensorkiln.errors import LostWorkerError, UnavailableError
from tests.service.test_job_ends import House


def ended(home: Path, work: Callable[[Body, str | None, Tell], Awaitable[bytes]]) -> Job:
    """A job once it is over, of which `work` makes the answer."""

    async def run() -> Job:
        jobs = House(home, work).jobs()
        await jobs.start()
        with acting_as(LOCAL):
            job = await jobs.accept(Body(b"{}", "0" * 64), None)
        assert await job.end(30)
        await jobs.close()
        return job

    return asyncio.run(run())


def test_a_compile_that_was_begun_again_often_does_not_use_up_the_job(tmp_path: Path) -> None:
    calls = 0

    async def work(body: Body, hook: str | None, tell: Tell) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 1:
            return b"answer"
        for attempt in range(2, MAX_ATTEMPTS + 2):
            tell({"stage": "retry", "attempt": attempt})
        raise UnavailableError("The store is away for a moment.")

    job = ended(tmp_path, work)
    assert (job.record.state, job.record.attempt, calls) == ("done", MAX_ATTEMPTS + 1, 2)


def test_a_job_ends_when_enough_workers_are_lost_over_it(tmp_path: Path) -> None:
    calls = 0

    async def work(body: Body, hook: str | None, tell: Tell) -> bytes:
        nonlocal calls
        calls += 1
        tell({"stage": "retry", "attempt": 2})
        raise LostWorkerError("Two were lost.", details={"attempts": 2})

    job = ended(tmp_path, work)
    assert (job.record.state, calls) == ("failed", 3)
    assert job.record.error is not None
    assert job.record.error["code"] == "infra.lost_worker"


def test_a_store_that_is_away_for_long_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_work, "_MAX_PAUSE_S", 0.0)
    calls = 0

    async def work(body: Body, hook: str | None, tell: Tell) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 3 * MAX_ATTEMPTS:
            return b"answer"
        raise UnavailableError("The store is away for a moment.")

    assert ended(tmp_path, work).record.state == "done"


def test_compiles_that_come_to_nothing_end_a_job_when_there_were_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_work, "_PAUSE_AFTER_A_COMPILE_S", 0.0)
    calls = 0

    async def work(body: Body, hook: str | None, tell: Tell) -> bytes:
        nonlocal calls
        calls += 1
        raise UnavailableError("The store does not take what was compiled.", details={"attempts": 1})

    job = ended(tmp_path, work)
    assert job.record.error is not None
    assert (job.record.state, job.record.error["code"], calls) == ("failed", "infra.unavailable", MAX_ATTEMPTS)

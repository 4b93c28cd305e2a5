"""However many jobs are worked on, their requests take no more memory than there is for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from service.engine.order import OnProgress
from service.fairness.turns import Fairness
from service.identity.caller import LOCAL, acting_as
from service.identity.register import TenantRecord
from service.settings import Settings
from service.wire.body import Body
from tests.service.test_job_ends import MEMORY, House

SIZE, JOBS = 400_000, 6


def test_jobs_wait_for_room_for_their_requests(tmp_path: Path) -> None:
    under_way, at_once = 0, list[int]()
    may_end = asyncio.Event()

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await may_end.wait()
        under_way -= 1
        return b"answer"

    async def run() -> list[str]:
        house = House(tmp_path, work)
        house.turns = Fairness(Settings(concurrency=JOBS), lambda _: TenantRecord()).jobs
        jobs = house.jobs()
        await jobs.start()
        with acting_as(LOCAL):
            bodies = [Body(bytes([number]) * SIZE, "0" * 64) for number in range(JOBS)]
            accepted = [await jobs.accept(body) for body in bodies]
        while under_way < MEMORY // SIZE:
            await asyncio.sleep(0.01)
        assert house.turns.load().waiting == 0  # who has no room keeps no turn from others
        may_end.set()
        for job in accepted:
            await job.end(30)
        await jobs.close()
        return [job.record.state for job in accepted]

    assert asyncio.run(run()) == ["done"] * JOBS
    assert max(at_once) == MEMORY // SIZE

"""A process that nothing in it can interrupt ends at its deadline, which leaves out the time before it began."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from service.sandbox.control import Limits
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import DeadlineExceededError
from tests.faults.size import FULL, sized
from tests.sandbox.processes import alive
from tests.service.server import jobs

from .boxes import RUNS, WALLS, failure, ping
from .shared import Boxes

pytestmark = [pytest.mark.xdist_group("boxes"), pytest.mark.faults]
DEADLINE_S = sized(0.5, 2.0)
LATE_S = sized(0.4, 0.05)
"""At the small size, on a machine that runs other tests."""
AT_ONCE = 4


def of_sessions(leaders: set[int]) -> list[int]:
    """Living processes of these sessions or process groups."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                members = {os.getsid(int(entry.name)), os.getpgid(int(entry.name))}
            except ProcessLookupError:
                continue
            found += [int(entry.name)] if members & leaders else []
    return found


@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_an_endless_loop_ends_at_its_deadline_and_nothing_survives_it(boxes: Boxes, wall: Wall, level: Level) -> None:
    async def hangs(sandbox: Sandbox) -> None:
        assert (await sandbox.start()).level == level
        assert sandbox.pid is not None
        ran: list[float] = []
        waited: list[float] = []
        leaders: set[int] = set()
        for _ in range((RUNS + AT_ONCE - 1) // AT_ONCE):
            begun = asyncio.get_running_loop().time()
            hanging = [asyncio.create_task(failure(sandbox, "spin", Limits(DEADLINE_S, 64, 4))) for _ in range(AT_ONCE)]
            while len(running := jobs(sandbox.pid, "fail")) < AT_ONCE:
                await asyncio.sleep(0.01)
            leaders |= set(running)
            for finished in asyncio.as_completed(hanging):
                error = await finished
                waited.append(asyncio.get_running_loop().time() - begun)
                assert type(error) is DeadlineExceededError
                assert error.details["deadline_s"] == DEADLINE_S
                ran.append(error.details["ran_s"])
        ordered = sorted(ran)
        print(f"{level}: {len(ran)} ran {ordered[0]:.4f} to {ordered[-1]:.4f} s, with their start {max(waited):.4f} s")
        assert ordered[0] >= DEADLINE_S
        assert ordered[-1 if FULL else len(ordered) // 2] <= DEADLINE_S + LATE_S
        time.sleep(1)
        assert of_sessions(leaders) == []
        await ping(sandbox)

    boxes.run(hangs, wall=wall)

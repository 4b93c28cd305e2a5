"""However a process ends, its caller gets the right class of error at once, and the next job runs: at every level."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

import pytest

from service.sandbox.control import Limits
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import CrashedError, ResourceExhaustedError
from tests.faults.size import FULL, sized
from tests.service.failing import STAGE
from tests.service.server import jobs

from .boxes import RUNS, WALLS, failure, needs_landlock, ping
from .shared import Boxes

pytestmark = [pytest.mark.xdist_group("boxes"), pytest.mark.faults]
ENDINGS = {
    "abort": "SIGABRT",
    "segfault": "SIGSEGV",
    "illegal_instruction": "SIGILL",
    "bus_error": "SIGBUS",
    "overflow_stack": "SIGSEGV",
    "exit": None,
    "throw": "SIGABRT",
    "close_socket": "SIGKILL",
    "garbage": None,
}
FURTHER = {"half_a_frame": None, "garbled_json": None, "garbled_error": None}
DETECTION_S = sized(0.5, 0.05)
"""At the small size, on a machine that runs other tests."""


class LastSign:
    """When a job was last seen alive: at its stage, or at the end of its process where that can be watched."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._process: int | None = None
        self.at = 0.0

    def on_stage(self, _stage: str) -> None:
        self.at = time.perf_counter()
        assert self._sandbox.pid is not None
        with suppress(ProcessLookupError, ValueError):
            (pid,) = jobs(self._sandbox.pid, "fail")
            self._process = os.pidfd_open(pid)
            asyncio.get_running_loop().add_reader(self._process, self._ended)

    def _ended(self) -> None:
        self.at = time.perf_counter()
        self.close()

    def close(self) -> None:
        if self._process is not None:
            asyncio.get_running_loop().remove_reader(self._process)
            os.close(self._process)
            self._process = None


async def detection_s(sandbox: Sandbox, how: str) -> float:
    """Seconds from the last sign of life to the error."""
    sign = LastSign(sandbox)
    error = await failure(sandbox, how, on_stage=sign.on_stage)
    now = time.perf_counter()
    sign.close()
    assert type(error) is CrashedError
    return now - sign.at


@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_an_ending_is_told_by_its_class_and_the_next_job_runs(boxes: Boxes, wall: Wall, level: Level) -> None:
    async def ends(sandbox: Sandbox) -> None:
        assert (await sandbox.start()).level == level
        for how, signal_name in {**ENDINGS, **FURTHER}.items():
            error = await failure(sandbox, how)
            assert type(error) is CrashedError, how
            assert error.details["signal"] == signal_name, how
            assert error.details["stage"] == STAGE
            await ping(sandbox)
        assert sandbox.restarts == 0

    boxes.run(ends, wall=wall)


def test_an_ending_is_detected_at_once(boxes: Boxes) -> None:
    async def detects(sandbox: Sandbox) -> None:
        seconds = {how: sorted([await detection_s(sandbox, how) for _ in range(RUNS)]) for how in ENDINGS}
        for how, each in seconds.items():
            print(f"{how}: p50 {each[len(each) // 2] * 1e3:.1f} ms, most {each[-1] * 1e3:.1f} ms")
        every = sorted(value for each in seconds.values() for value in each)
        at_most = every[int(len(every) * 0.99) - 1] if FULL else every[len(every) // 2]
        print(f"p99 of {len(every)}: {every[int(len(every) * 0.99) - 1] * 1e3:.1f} ms")
        assert at_most < DETECTION_S
        await ping(sandbox)
        assert sandbox.restarts == 0

    boxes.run(detects)


@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_memory_is_refused_at_the_limit_and_the_error_has_the_peak(boxes: Boxes, wall: Wall, level: Level) -> None:
    limit_mib = sized(192, 1024)
    limits = Limits(deadline_s=30.0, memory_mib=limit_mib, file_mib=4)

    async def eats(sandbox: Sandbox) -> None:
        assert (await sandbox.start()).level == level
        for _ in range(RUNS // 2 or 1):
            error = await failure(sandbox, "eat_8_gib", limits)
            assert type(error) is ResourceExhaustedError
            assert error.details["resource"] == "memory"
            assert limit_mib * 0.9 <= error.details["peak_mib"] <= limit_mib * 1.1 + 64
        await ping(sandbox)
        assert sandbox.restarts == 0

    boxes.run(eats, wall=wall)


@needs_landlock
def test_a_job_that_closes_its_socket_and_stays_harms_nobody_else(boxes: Boxes) -> None:
    async def stays(sandbox: Sandbox) -> None:
        first = sandbox.pid
        results = await asyncio.gather(*(failure(sandbox, "close_socket") for _ in range(4)), ping(sandbox))
        assert all("closed its socket" in str(error) for error in results[:-1])
        assert sandbox.pid == first

    boxes.run(stays)

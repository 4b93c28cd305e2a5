"""A process does one job, and ends with it: nothing of one job is there for the next."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import CrashedError, RequestError
from tests.sandbox.boxes import LIMITS, failure, ping
from tests.sandbox.processes import ended_within
from tests.sandbox.shared import Boxes

# One process runs all of it, and that on what is charged, with one fork server for most of it.
pytestmark = pytest.mark.xdist_group("one process")
WARM_UP: Final = "tests.sandbox.warm_ups:do_as_told"
SOON_S: Final = 2.0


async def told(sandbox: Sandbox, what: str = "nothing", limits: Limits = LIMITS) -> int:
    """The process that has done as told."""
    answer = await sandbox.run("ping", Message({"do": what}), limits)
    return answer.header["pid"]


def test_every_job_has_a_process_of_its_own_which_ends_with_it(boxes: Boxes) -> None:
    async def many(sandbox: Sandbox) -> None:
        processes = [await told(sandbox) for _ in range(4)]
        processes += await asyncio.gather(*(told(sandbox, "linger") for _ in range(4)))
        assert len(set(processes)) == len(processes)
        for process in processes:
            assert await asyncio.to_thread(ended_within, process, SOON_S)

    boxes.run(many, warm_ups=[WARM_UP])


def test_state_of_a_task_is_invisible_to_the_next(boxes: Boxes) -> None:
    async def mark(sandbox: Sandbox) -> None:
        for _ in range(3):
            answer = await sandbox.run("ping", Message({"do": "leave_a_mark"}), LIMITS)
            assert answer.header["deed"] == "1"

    boxes.run(mark, warm_ups=[WARM_UP])


def test_an_error_of_its_own_ends_a_process_as_an_answer_does(boxes: Boxes) -> None:
    async def errs(sandbox: Sandbox) -> None:
        with pytest.raises(RequestError, match="as told"):
            await told(sandbox, "refuse")
        await ping(sandbox)
        assert isinstance(await failure(sandbox, "abort"), CrashedError)
        assert sandbox.restarts == 0

    boxes.run(errs, warm_ups=[WARM_UP])


def test_a_process_that_has_answered_and_goes_on_is_ended_soon(boxes: Boxes) -> None:
    async def stays(sandbox: Sandbox) -> None:
        process = await told(sandbox, "answer_and_spin", Limits(3600.0, LIMITS.memory_mib, LIMITS.file_mib))
        assert await asyncio.to_thread(ended_within, process, SOON_S)

    boxes.run(stays, warm_ups=[WARM_UP])


def test_a_job_has_no_timer_that_signals(boxes: Boxes) -> None:
    async def wakes(sandbox: Sandbox) -> None:
        answer = await sandbox.run("ping", Message({"do": "set_timers"}), LIMITS)
        assert answer.header["deed"] == "refused"

    boxes.run(wakes, warm_ups=[WARM_UP])

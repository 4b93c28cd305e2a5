"""A process that has done a job for an owner does the next ones of that owner, and nothing for anybody else."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import Final

import pytest

from service.sandbox.control import Limits
from service.sandbox.forked import ENOUGH_JOBS, REST_S
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import CrashedError, DeadlineExceededError, RequestError, TensorkilnError
from tests.sandbox.boxes import LIMITS, failure, in_sandbox, ping
from tests.sandbox.processes import await_state, ended_within, name, state
from tests.sandbox.shared import Boxes
from tests.service.server import await_end, children

# One process runs all of it, and that on what is charged, with one fork server for most of it.
pytestmark = pytest.mark.xdist_group("owners")
WARM_UP: Final = "tests.service.warm_ups:do_as_told"


async def told(sandbox: Sandbox, what: str = "nothing", owner: str = "me", limits: Limits = LIMITS) -> int:
    """The process that has done as told, for an owner."""
    answer = await sandbox.run("ping", Message({"do": what}), limits, owner=owner)
    return answer.header["pid"]


async def at_rest(process: int) -> None:
    """Comes back when a process is stopped."""
    await asyncio.to_thread(await_state, process, "T")


async def rests(process: int) -> bool:
    """Whether a process is stopped, and not ended, when it has done its job."""
    while (now := state(process)) not in ("T", "Z", ""):
        await asyncio.sleep(0.002)
    return now == "T" and not await asyncio.to_thread(ended_within, process, 0.1)


async def is_ended(process: int) -> bool:
    """Whether a process ends long before one that rests would."""
    return await asyncio.to_thread(ended_within, process, REST_S / 2)


def test_jobs_of_one_owner_share_a_process_and_those_of_others_do_not(boxes: Boxes) -> None:
    async def share(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        assert await told(sandbox, owner="you") != mine
        await at_rest(mine)
        assert await told(sandbox) == mine
        await at_rest(mine)
        assert await told(sandbox, owner="") != mine
        assert len({await told(sandbox, owner="") for _ in range(4)}) == 4

    boxes.run(share, warm_ups=[WARM_UP])


def test_jobs_at_one_time_have_a_process_each(boxes: Boxes) -> None:
    async def at_once(sandbox: Sandbox) -> None:
        assert len(set(await asyncio.gather(*(told(sandbox, "linger") for _ in range(6))))) == 6

    boxes.run(at_once, warm_ups=[WARM_UP])


def test_a_process_does_no_job_within_other_limits(boxes: Boxes) -> None:
    async def others(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        assert await told(sandbox, limits=Limits(LIMITS.deadline_s, LIMITS.memory_mib + 1, LIMITS.file_mib)) != mine

    boxes.run(others, warm_ups=[WARM_UP])


def test_an_end_is_told_of_one_job_alone(boxes: Boxes) -> None:
    async def ends(sandbox: Sandbox) -> None:
        mine = await told(sandbox, "toil")
        await at_rest(mine)
        for _ in range(3):
            assert await told(sandbox, "toil") == mine
            await at_rest(mine)
        with pytest.raises(CrashedError) as caught:
            await told(sandbox, "abort")
        assert caught.value.details["cpu_s"] < 0.2
        assert await is_ended(mine)

    boxes.run(ends, warm_ups=[WARM_UP])


def test_an_error_of_its_own_does_not_end_a_process(boxes: Boxes) -> None:
    async def errs(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        with pytest.raises(RequestError, match="as told"):
            await told(sandbox, "refuse")
        await at_rest(mine)
        assert await told(sandbox) == mine

    boxes.run(errs, warm_ups=[WARM_UP])


@pytest.mark.parametrize("what", ["segfault", "exit", "garbage", "eat_memory"])
def test_what_ends_a_process_ends_one_job_and_the_next_has_another(boxes: Boxes, what: str) -> None:
    async def fails(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        with pytest.raises(TensorkilnError) as caught:
            await told(sandbox, what)
        assert caught.value.details["stage"] == "test-hook"
        assert await is_ended(mine)
        assert await told(sandbox) != mine
        assert sandbox.restarts == 0

    boxes.run(fails, warm_ups=[WARM_UP])


def test_each_job_has_its_own_deadline(boxes: Boxes) -> None:
    limits, rested_s = Limits(0.5, LIMITS.memory_mib, LIMITS.file_mib), 2.0

    async def late(sandbox: Sandbox) -> None:
        mine = await told(sandbox, limits=limits)
        await at_rest(mine)
        await asyncio.sleep(rested_s)
        begin = time.monotonic()
        with pytest.raises(DeadlineExceededError) as caught:
            await told(sandbox, "hang", limits=limits)
        assert time.monotonic() - begin >= 0.5
        assert 0.5 <= caught.value.details["ran_s"] < rested_s
        assert await is_ended(mine)
        assert await told(sandbox, limits=limits) != mine

    boxes.run(late, warm_ups=[WARM_UP])


@pytest.mark.parametrize(
    ("what", "error"), [("say_done_and_hang", DeadlineExceededError), ("say_done_and_garble", CrashedError)]
)
def test_a_process_that_calls_itself_done_without_an_answer_does_no_other_job(
    boxes: Boxes, what: str, error: type[TensorkilnError]
) -> None:
    async def silent(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        with pytest.raises(error):
            await told(sandbox, what, limits=Limits(0.5, LIMITS.memory_mib, LIMITS.file_mib))
        for process in children(sandbox.pid or 0):
            if process != mine and name(process) == "kiln ping":
                await_end(process)
        await at_rest(mine)
        assert await told(sandbox) == mine

    boxes.run(silent, warm_ups=[WARM_UP])


def test_a_process_that_says_twice_that_it_is_done_is_ended(boxes: Boxes) -> None:
    async def twice(sandbox: Sandbox) -> None:
        # One that is stopped before it says so again says it when it goes on.
        for _ in range(4):
            if await is_ended(await told(sandbox, "say_done_and_answer")):
                await ping(sandbox)
                return
        raise AssertionError("none was ended")

    boxes.run(twice, warm_ups=[WARM_UP])


def test_a_process_that_is_ended_for_what_it_says_has_not_reached_a_limit(boxes: Boxes) -> None:
    async def told_off(sandbox: Sandbox) -> None:
        with pytest.raises(CrashedError, match="broke the protocol") as caught:
            await sandbox.run("ping", Message({"do": "say_done_twice"}), LIMITS, owner="me", again=False)
        assert caught.value.details["signal"] == "SIGKILL"
        await ping(sandbox)

    boxes.run(told_off, warm_ups=[WARM_UP])


@pytest.mark.parametrize("what", ["answer_and_spin", "close_and_answer"])
def test_a_process_that_has_answered_and_does_not_rest_is_ended_soon(boxes: Boxes, what: str) -> None:
    async def stays(sandbox: Sandbox) -> None:
        mine = await told(sandbox, what, limits=Limits(3600.0, LIMITS.memory_mib, LIMITS.file_mib))
        assert await is_ended(mine)
        assert await told(sandbox) != mine

    boxes.run(stays, warm_ups=[WARM_UP])


def test_a_process_that_was_left_is_ended(boxes: Boxes) -> None:
    async def leaves(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        job = asyncio.create_task(told(sandbox, "hang"))
        while state(mine) == "T":
            await asyncio.sleep(0.005)
        job.cancel()
        await asyncio.wait([job])
        assert await is_ended(mine)
        await ping(sandbox)

    boxes.run(leaves, warm_ups=[WARM_UP])


def test_a_process_that_has_worked_enough_does_no_other_job() -> None:
    async def enough(sandbox: Sandbox) -> None:
        mine, done = await told(sandbox, "toil"), 1
        while await rests(mine):
            assert await told(sandbox, "toil") == mine
            done += 1
        assert 1 < done <= 10  # a tenth of a second each
        assert await told(sandbox) != mine

    in_sandbox(enough, warm_ups=[WARM_UP, "tests.service.warm_ups:have_enough_soon"])


def test_a_process_does_not_do_job_after_job_for_ever(boxes: Boxes) -> None:
    async def many(sandbox: Sandbox) -> None:
        done: Counter[int] = Counter()
        while len(done) < 2:
            process = await told(sandbox)
            done[process] += 1
            if done[process] < ENOUGH_JOBS:
                await at_rest(process)
        assert max(done.values()) == ENOUGH_JOBS

    boxes.run(many, warm_ups=[WARM_UP])


@pytest.mark.parametrize("what", ["keep", "keep_shared", "keep_addresses", "swell"])
def test_a_process_that_keeps_memory_or_had_much_does_no_other_job(boxes: Boxes, what: str) -> None:
    async def keeps(sandbox: Sandbox) -> None:
        assert await is_ended(await told(sandbox, what))
        await ping(sandbox)

    boxes.run(keeps, warm_ups=[WARM_UP])


def test_a_process_that_takes_no_more_jobs_is_ended(boxes: Boxes) -> None:
    async def deaf(sandbox: Sandbox) -> None:
        mine = await told(sandbox, "hear_no_more")
        assert await told(sandbox) != mine
        assert await is_ended(mine)
        await ping(sandbox)

    boxes.run(deaf, warm_ups=[WARM_UP])


def test_a_process_at_rest_cannot_have_itself_woken(boxes: Boxes) -> None:
    async def wakes(sandbox: Sandbox) -> None:
        answer = await sandbox.run("ping", Message({"do": "set_timers"}), LIMITS, owner="me")
        assert answer.header["deed"] == "refused"

    boxes.run(wakes, warm_ups=[WARM_UP])


def test_processes_at_rest_are_few_and_do_not_stay(boxes: Boxes) -> None:
    async def stay(sandbox: Sandbox) -> None:
        processes = [await told(sandbox, owner=str(number)) for number in range(10)]
        for process in processes[:2]:
            assert await is_ended(process)
        for process in processes[2:]:
            await at_rest(process)
        begin = time.monotonic()
        for process in processes[2:]:
            await_end(process)
        assert time.monotonic() - begin > REST_S / 2

    boxes.run(stay, warm_ups=[WARM_UP])


def test_a_process_at_rest_that_somebody_kills_is_not_missed(boxes: Boxes) -> None:
    async def killed(sandbox: Sandbox) -> None:
        mine = await told(sandbox)
        await at_rest(mine)
        os.kill(mine, 9)
        assert await is_ended(mine)
        assert await told(sandbox) != mine
        assert isinstance(await failure(sandbox, "abort"), CrashedError)

    boxes.run(killed, warm_ups=[WARM_UP])

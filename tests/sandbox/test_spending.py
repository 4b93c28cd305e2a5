"""What a job is charged is what the operating system says that its processes have had."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import nullcontext
from typing import Final

import pytest

from service.sandbox.connection import Spending
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import CrashedError, DeadlineExceededError, LostWorkerError, TensorkilnError
from tests.sandbox.boxes import LIMITS, in_sandbox
from tests.sandbox.shared import Boxes
from tests.sandbox.test_one_process import WARM_UP

pytestmark = pytest.mark.xdist_group("one process")
TOIL_S: Final = 0.1
"""What the deed `toil` takes of a processor."""
SOON: Final = Limits(0.5, LIMITS.memory_mib, LIMITS.file_mib)
NOT_SO_SOON: Final = Limits(2.0, LIMITS.memory_mib, LIMITS.file_mib)


async def spent(
    sandbox: Sandbox, what: str, limits: Limits = LIMITS, error: type[TensorkilnError] | None = None
) -> float:
    """Processor seconds that are charged for a deed, which ends with an error of this class."""
    charged: list[float] = []
    spending = Spending(charged.append)
    with nullcontext() if error is None else pytest.raises(error):
        await sandbox.run("ping", Message({"do": what}), limits, spending=spending)
    assert await spending.settled(5.0)
    assert sum(charged) == spending.seconds
    return spending.seconds


def test_every_job_is_charged_its_own_seconds_and_no_sleep(boxes: Boxes) -> None:
    async def work(sandbox: Sandbox) -> None:
        for _ in range(4):
            assert TOIL_S <= await spent(sandbox, "toil") < 2 * TOIL_S
        # It sleeps for as long.
        assert 0 < await spent(sandbox, "linger") < TOIL_S

    boxes.run(work, warm_ups=[WARM_UP])


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("answer_and_spin", None),
        ("exit", CrashedError),
    ],
)
def test_abnormal_ends_are_charged(boxes: Boxes, what: str, error: type[TensorkilnError] | None) -> None:
    async def cheat(sandbox: Sandbox) -> None:
        assert 0 < await spent(sandbox, what, SOON, error) < SOON.deadline_s

    boxes.run(cheat, warm_ups=[WARM_UP])


def test_a_hang_until_the_deadline_is_not_charged_and_a_loop_is(boxes: Boxes) -> None:
    async def wait(sandbox: Sandbox) -> None:
        hang, spin = [await spent(sandbox, what, NOT_SO_SOON, DeadlineExceededError) for what in ("hang", "spin")]
        assert hang < TOIL_S < spin < NOT_SO_SOON.deadline_s + 1

    boxes.run(wait, warm_ups=[WARM_UP])


def test_unknown_cpu_time_is_charged_as_one_processor() -> None:
    async def lose(sandbox: Sandbox) -> None:
        spending, begin = Spending(), time.monotonic()
        limits = Limits(20.0, LIMITS.memory_mib, LIMITS.file_mib)
        running = asyncio.create_task(sandbox.run("ping", Message({"do": "hang"}), limits, spending=spending))
        for _ in range(2):  # a job that loses its fork server is begun once more
            while (pid := sandbox.pid) is None:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            os.kill(pid, signal.SIGKILL)
            while sandbox.pid == pid:
                await asyncio.sleep(0.01)
        with pytest.raises(LostWorkerError):
            await running
        assert await spending.settled(1.0)
        assert 0.4 < spending.seconds <= time.monotonic() - begin

    in_sandbox(lose, warm_ups=[WARM_UP])


def test_waiting_for_cpu_time_has_a_timeout() -> None:
    async def ask() -> None:
        spending = Spending()
        assert await spending.settled(0.0)
        spending.begin()
        assert not await spending.settled(0.01)
        spending.end(0.5)
        spending.add(1.0)
        assert await spending.settled(0.0)
        assert spending.seconds == 1.5

    asyncio.run(ask())

"""Each way in which a process can end is one typed error, and the next job runs."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import DeadlineExceededError, LostWorkerError, TensorkilnError
from tests.sandbox.boxes import failure, in_sandbox, ping
from tests.sandbox.processes import alive
from tests.sandbox.shared import Boxes
from tests.service.failing import STAGE
from tests.service.server import await_end, children, jobs

LIMITS = Limits(deadline_s=5.0, memory_mib=64, file_mib=4)


@pytest.mark.xdist_group("boxes")
def test_the_end_of_standard_error_is_in_the_error(boxes: Boxes) -> None:
    async def shouts(sandbox: Sandbox) -> None:
        error = await failure(sandbox, "stderr")
        assert "the last words" in error.details["stderr"]
        assert len(error.details["stderr"]) <= 4096
        crash = await failure(sandbox, "segfault")
        assert "in segfault" in crash.details["stderr"]

    boxes.run(shouts)


def test_a_fork_server_that_dies_is_replaced_and_its_job_started_again_once() -> None:
    async def dies(sandbox: Sandbox) -> None:
        first = sandbox.pid
        assert first is not None
        stages: list[str] = []
        hanging = asyncio.create_task(sandbox.run("fail", Message({"how": "hang"}), Limits(1.0, 64, 4), stages.append))
        while not stages:
            await asyncio.sleep(0.01)
        (child,) = jobs(first)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(DeadlineExceededError):
            await hanging
        assert stages == [STAGE, STAGE]
        assert sandbox.restarts == 1
        assert sandbox.pid not in (None, first)
        await_end(child)
        stages.clear()

        def kill(stage: str) -> None:
            stages.append(stage)
            assert sandbox.pid is not None
            os.kill(sandbox.pid, signal.SIGKILL)

        with pytest.raises(LostWorkerError) as caught:
            await sandbox.run("fail", Message({"how": "hang"}), LIMITS, kill)
        assert caught.value.retryable
        assert len(stages) == 2
        await ping(sandbox)

    in_sandbox(dies)


def test_nothing_is_left_after_the_end() -> None:
    left: list[int] = []

    async def ends(sandbox: Sandbox) -> None:
        assert sandbox.pid is not None
        stages: list[str] = []
        hanging = asyncio.create_task(sandbox.run("fail", Message({"how": "hang"}), LIMITS, stages.append))
        while not stages:
            await asyncio.sleep(0.01)
        left.extend([sandbox.pid, *jobs(sandbox.pid)])
        await sandbox.close()
        with pytest.raises(TensorkilnError):
            await hanging

    in_sandbox(ends)
    assert len(left) == 2
    assert not any(alive(pid) for pid in left)


def test_a_caller_that_leaves_while_the_fork_server_starts_again_leaves_no_other_behind() -> None:
    async def leaves(sandbox: Sandbox) -> None:
        first = sandbox.pid
        assert first is not None
        others = set(children(os.getpid())) - {first}
        os.kill(first, signal.SIGKILL)
        await_end(first)
        impatient = asyncio.create_task(sandbox.run("fail", Message({"how": "hang"}), LIMITS))
        while not (started := set(children(os.getpid())) - others - {first}):
            await asyncio.sleep(0.01)
        impatient.cancel()
        await asyncio.wait([impatient])
        assert impatient.cancelled()
        assert not any(alive(pid) for pid in started)
        await ping(sandbox)
        assert set(children(os.getpid())) - others == {sandbox.pid}

    in_sandbox(leaves)

"""A process that somebody outside the service ends is a lost attempt, not a defect and no limit: it is begun again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from service.action import Action
from service.engine.local import LocalEngine
from service.engine.order import Order, Wanted
from service.sandbox import verdict
from service.sandbox.control import Ended, Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.attempts import MAX_CRASHES, Crashes
from tensorkiln.errors import LostWorkerError, ResourceExhaustedError
from tests.service.server import jobs
from tests.trust.stores import Stocked

from .boxes import LIMITS, ping
from .shared import Boxes

pytestmark = pytest.mark.xdist_group("boxes")
WARM_UP = "tests.sandbox.warm_ups:take_over"
FOREIGN = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", FOREIGN)
def test_a_job_that_is_killed_is_begun_again(boxes: Boxes, number: int) -> None:
    async def kills(sandbox: Sandbox) -> None:
        assert sandbox.pid is not None
        fork_server, before = sandbox.pid, jobs(sandbox.pid, "stay")  # those that are ending yet
        begun: list[int] = []

        def on_stage(_: str) -> None:
            (process,) = set(jobs(fork_server, "stay")).difference(before, begun)
            begun.append(process)
            if len(begun) == 1:
                os.kill(process, number)

        answer = await sandbox.run("stay", Message({"a": 1}), LIMITS, on_stage)
        assert answer.header == {"a": 1}
        assert len(begun) == 2

    boxes.run(kills, warm_ups=[WARM_UP])


@pytest.mark.parametrize("number", FOREIGN)
def test_a_job_that_is_killed_twice_is_lost_and_may_be_sent_again(boxes: Boxes, number: int) -> None:
    async def kills(sandbox: Sandbox) -> None:
        with pytest.raises(LostWorkerError) as caught:
            await sandbox.run("signal", Message({"signal": number}), LIMITS)
        assert caught.value.retryable
        assert caught.value.details["signal"] == signal.Signals(number).name
        assert signal.Signals(number).name in str(caught.value)
        await ping(sandbox)

    boxes.run(kills, warm_ups=[WARM_UP])


def test_compiles_that_are_killed_do_not_make_a_graph_poison(boxes: Boxes, tmp_path: Path) -> None:
    async def kills(sandbox: Sandbox) -> None:
        stocked = Stocked.at(tmp_path / "store")
        engine = LocalEngine(sandbox, LIMITS, stocked.blobs, stocked.programs, Crashes(stocked.records, stocked.notary))
        action = Action(1, "0" * 64, "a" * 64, {}, "", 1, {"kind": "cpu", "cpu": str(int(signal.SIGKILL))})
        for _ in range(MAX_CRASHES + 1):
            with pytest.raises(LostWorkerError) as caught:
                await engine.make(Order(Wanted(action, b'{"schema":1}', False)), lambda _: None)
            assert "cached" not in caught.value.details
        await engine.close()

    boxes.run(kills, warm_ups=[WARM_UP])


@pytest.mark.parametrize(("grown_mib", "kind"), [(95, ResourceExhaustedError), (50, LostWorkerError)])
def test_a_kill_is_the_limit_of_memory_only_near_it(grown_mib: int, kind: type[Exception]) -> None:
    ended = Ended(1, int(signal.SIGKILL), False, grown_mib + 60, grown_mib, 0.1, "")
    assert type(verdict.verdict(ended, Limits(3.0, 100, 4), "codegen")) is kind

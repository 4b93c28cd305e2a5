"""Whatever signal ends a process, its caller gets the class of a crash, and it counts as one."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from service.action import Action
from service.engine.local import LocalEngine
from service.engine.order import Order, Progress, Wanted
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.attempts import MAX_CRASHES, Crashes
from tensorkiln.errors import CrashedError
from tests.trust.stores import Stocked

from .boxes import LIMITS, in_sandbox, ping
from .shared import Boxes

pytestmark = pytest.mark.xdist_group("boxes")
WARM_UP = "tests.sandbox.warm_ups:take_over"
NAMELESS = 40


# Not those of the C library, 32 and 33, which it may have made something else of.
@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (NAMELESS, "signal 40"), (signal.SIGRTMAX, "SIGRTMAX")]
)
def test_every_signal_has_a_name(boxes: Boxes, number: int, name: str) -> None:
    async def ends(sandbox: Sandbox) -> None:
        with pytest.raises(CrashedError, match=f"by {name} during start") as caught:
            await sandbox.run("signal", Message({"signal": number}), LIMITS)
        assert caught.value.details["signal"] == name
        await ping(sandbox)

    boxes.run(ends, warm_ups=[WARM_UP])


def test_a_graph_that_ends_compiles_by_a_nameless_signal_is_poison(tmp_path: Path) -> None:
    async def poisons(sandbox: Sandbox) -> None:
        stocked = Stocked.at(tmp_path / "store")
        crashes = Crashes(stocked.records, stocked.notary)
        engine = LocalEngine(sandbox, LIMITS, stocked.blobs, stocked.programs, crashes)
        action = Action(1, "0" * 64, "a" * 64, {}, "", 1, {"kind": "cpu", "cpu": str(NAMELESS)})
        stages: list[Progress] = []
        for is_known in (False, True):
            with pytest.raises(CrashedError) as caught:
                await engine.make(Order(Wanted(action, b'{"schema":1}', False)), stages.append)
            details = caught.value.details
            assert (details["signal"], details["attempts"]) == ("signal 40", MAX_CRASHES)
            assert await stocked.blobs.get(details["reproducer"]) is not None
            assert details.get("cached", False) is is_known
        assert len([stage for stage in stages if stage["stage"] == "retry"]) == MAX_CRASHES - 1
        await engine.close()

    in_sandbox(poisons, warm_ups=[WARM_UP])

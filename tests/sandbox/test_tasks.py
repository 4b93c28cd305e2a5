"""A job is one thread for all its life, whatever else its user runs."""

from __future__ import annotations

import pytest

from service.sandbox import syscalls
from service.sandbox.frames import Message
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox

from .boxes import LIMITS, WALLS
from .shared import Boxes

pytestmark = pytest.mark.xdist_group("boxes")
WARM_UP = "tests.sandbox.warm_ups:take_over"


@pytest.mark.skipif(not syscalls.is_supported(), reason="this kernel filters no system calls")
@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_a_job_starts_no_thread_and_no_process_also_as_root(boxes: Boxes, wall: Wall, level: Level) -> None:
    async def multiplies(sandbox: Sandbox) -> None:
        assert Level((await sandbox.start()).level) is level
        outcomes = (await sandbox.run("multiply", Message(), LIMITS)).header
        assert (outcomes["fork"], outcomes["thread"]) == ("refused", "refused")

    boxes.run(multiplies, wall=wall, warm_ups=[WARM_UP])


def test_the_limit_of_tasks_depends_on_no_other_process(boxes: Boxes) -> None:
    """The kernel counts those of the user on the whole machine, other containers included, which /proc does not."""

    async def multiplies(sandbox: Sandbox) -> None:
        assert (await sandbox.run("multiply", Message(), LIMITS)).header["limits"] == [0, 0]

    boxes.run(multiplies, warm_ups=[WARM_UP])

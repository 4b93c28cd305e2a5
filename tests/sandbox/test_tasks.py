"""A job starts no thread, whatever else its user runs, and those of a compile are confined as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.sandbox import syscalls
from service.sandbox.child import pool_threads
from service.sandbox.frames import Message
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox

from .boxes import LIMITS, WALLS
from .shared import Boxes

pytestmark = pytest.mark.xdist_group("boxes")
HERE = "tests.sandbox.warm_ups"
WARM_UP = f"{HERE}:take_over"


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


@pytest.mark.skipif(not pool_threads("compile"), reason="one processor")
@pytest.mark.skipif(not syscalls.is_supported(), reason="this kernel filters no system calls")
@pytest.mark.parametrize(("wall", "level"), WALLS)
def test_threads_of_a_compile_are_confined_as_its_process_is(
    boxes: Boxes, wall: Wall, level: Level, tmp_path: Path
) -> None:
    outside = tmp_path / "file"
    outside.touch()

    async def tries(sandbox: Sandbox) -> None:
        tried = Message({"files": [str(outside), "/dev/null"], "addresses": []})
        outcomes = (await sandbox.run("compile", tried, LIMITS)).header
        assert (outcomes["fork"], outcomes["thread"]) == ("refused", "refused")
        assert outcomes["reached"] == (["/dev/null"] if level is Level.LANDLOCK else [str(outside), "/dev/null"])

    boxes.run(tries, wall=wall, warm_ups=[f"{HERE}:use_the_pool"])

"""A job that leaves files in its directory, as a warm-up for fork servers of the tests."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from service.sandbox.child import Outlet, Task
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.sandbox.tasks import TASKS
from tests.sandbox.boxes import LIMITS

WARM_UP: Final = "tests.sandbox.litter:have_pings_leave_files"
LEFT: Final = "left"
"""The stage at which all files are there."""
_FILES: Final = 4_000


def _fill() -> None:
    for number in range(_FILES):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))


DEEDS: Final[dict[str, Callable[[], None]]] = {"nothing": lambda: None, "files": _fill}


def have_pings_leave_files() -> None:
    """Have the job `ping` `leave` what its header says, tell its directory, and then `stay` so many seconds."""

    def job(request: Message, outlet: Outlet) -> Message:
        directory = os.getcwd()
        DEEDS[request.header.get("leave", "nothing")]()
        outlet.stage(LEFT)
        time.sleep(request.header.get("stay", 0))
        return Message({**request.header, "directory": directory})

    cast(dict[str, Task], TASKS)["ping"] = job


async def leave(sandbox: Sandbox, what: str) -> Path:
    """The directory of a job that has left files in it."""
    answer = await sandbox.run("ping", Message({"leave": what}), LIMITS)
    return Path(answer.header["directory"])


async def removed(directory: Path) -> None:
    """Comes back when a directory is gone; one that never is, is for the time-out of the test."""
    while directory.exists():
        await asyncio.sleep(0.01)

"""What a job leaves in its directory is removed, whatever it is, and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import pytest

from service.sandbox.sandbox import Sandbox
from service.sandbox.scratch import Scratch
from tests.sandbox.boxes import in_sandbox
from tests.sandbox.litter import WARM_UP, leave, removed


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the services of the test make their directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


async def lose_fork_server(sandbox: Sandbox) -> None:
    """Comes back when the service knows that its fork server has been killed."""
    first = sandbox.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    while sandbox.pid == first:
        await asyncio.sleep(0.01)


def test_a_fork_server_is_replaced_when_what_it_leaves_cannot_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def loses(sandbox: Sandbox) -> None:
        with monkeypatch.context() as failing:
            failing.setattr(Scratch, "remove", lambda _: os.rmdir("/nonexistent"))
            await lose_fork_server(sandbox)
            await leave(sandbox, "nothing")
        assert sandbox.restarts == 1

    in_sandbox(loses, warm_ups=[WARM_UP])


def test_jobs_run_while_the_files_of_others_are_removed() -> None:
    async def goes_on(sandbox: Sandbox) -> None:
        directories = [await leave(sandbox, "files") for _ in range(4)]
        other = await leave(sandbox, "nothing")
        assert directories[-1].exists(), "there are many files, and no job waits until they are gone"
        for each in (*directories, other):
            await removed(each)

    in_sandbox(goes_on, warm_ups=[WARM_UP])


@pytest.mark.parametrize("ends_itself", [True, False], ids=["closed", "killed"])
def test_no_file_outlives_its_fork_server(temporary: Path, ends_itself: bool) -> None:
    async def ends(sandbox: Sandbox) -> None:
        await leave(sandbox, "files")
        if not ends_itself:
            await lose_fork_server(sandbox)

    in_sandbox(ends, warm_ups=[WARM_UP])
    assert list(temporary.iterdir()) == []

"""What a job leaves in its directory is removed, whatever it is, and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import pytest

from service.sandbox.sandbox import Sandbox
from service.sandbox.scratch import NAME, Scratch
from tests.sandbox.boxes import in_sandbox
from tests.sandbox.litter import WARM_UP, leave, removed
from tests.sandbox.processes import name, state
from tests.service.server import children


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the services of the test make their directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def removers(sandbox: Sandbox) -> list[int]:
    """The processes of a fork server that remove files."""
    assert sandbox.pid is not None
    return [child for child in children(sandbox.pid) if name(child) == NAME]


async def stopped_remover(sandbox: Sandbox) -> int:
    """The process that removes what a job has just left, stopped before it is done."""
    while not (found := removers(sandbox)):
        await asyncio.sleep(0)
    os.kill(found[0], signal.SIGSTOP)
    return found[0]


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
        directory = await leave(sandbox, "files")
        remover = await stopped_remover(sandbox)
        assert any(directory.iterdir())
        others = [await leave(sandbox, what) for what in ("nothing", "files")]
        assert removers(sandbox) == [remover]
        assert not others[0].exists()
        os.kill(remover, signal.SIGCONT)
        for each in (directory, *others):
            await removed(each)
        while removers(sandbox):
            await asyncio.sleep(0.01)
        assert sandbox.pid is not None
        assert [child for child in children(sandbox.pid) if state(child) == "Z"] == []

    in_sandbox(goes_on, warm_ups=[WARM_UP])


@pytest.mark.parametrize("ends_itself", [True, False], ids=["closed", "killed"])
def test_no_remover_outlives_its_fork_server(temporary: Path, ends_itself: bool) -> None:
    async def ends(sandbox: Sandbox) -> None:
        await leave(sandbox, "files")
        remover = await stopped_remover(sandbox)
        if ends_itself:
            await sandbox.close()
        else:
            await lose_fork_server(sandbox)
        while state(remover) not in ("", "Z"):
            await asyncio.sleep(0.01)

    in_sandbox(ends, warm_ups=[WARM_UP])
    assert list(temporary.iterdir()) == []

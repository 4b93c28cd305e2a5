"""What a service leaves that was killed is removed when another starts, and nothing of one that lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.sandbox import scratch
from service.sandbox.sandbox import Sandbox
from service.sandbox.scratch import Scratch
from tests.sandbox.boxes import in_sandbox, ping
from tests.sandbox.litter import removed

_SERVICE = """
import asyncio
from service.sandbox.sandbox import Sandbox

async def main():
    sandbox = Sandbox()
    await sandbox.start()
    print(sandbox.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the services of the test make their directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_directory_of_a_killed_service_is_removed_at_the_next_start(temporary: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", _SERVICE], stdout=subprocess.PIPE, env=environment) as service:
        assert service.stdout is not None
        fork_server = int(service.stdout.readline())
        # It would remove it itself.
        os.kill(fork_server, signal.SIGSTOP)
        service.kill()
    os.kill(fork_server, signal.SIGKILL)
    (left,) = temporary.iterdir()
    (left / "file").touch()

    async def starts(sandbox: Sandbox) -> None:
        await removed(left)
        await ping(sandbox)

    in_sandbox(starts)
    assert list(temporary.iterdir()) == []


def test_locked_scratch_directories_are_kept(temporary: Path) -> None:
    held = Scratch()
    scratch.sweep()
    assert held.path.is_dir()
    held.remove()
    assert list(temporary.iterdir()) == []
    held.remove()


def test_one_that_is_just_made_stays() -> None:
    with ThreadPoolExecutor(2) as pool:
        making = [pool.submit(Scratch) for _ in range(200)]
        while not all(made.done() for made in making):
            scratch.sweep()
    for made in making:
        assert made.result().path.is_dir()
        made.result().remove()


def test_nothing_else_is_swept(temporary: Path) -> None:
    held = Scratch()
    held.remove()
    name = held.path.name
    Path(temporary, "mine").mkdir()
    Path(temporary, name).symlink_to("mine")
    Path(temporary, f"{name}0").touch()
    Path(temporary, f"of-{name}").mkdir()
    before = set(temporary.iterdir())
    if os.geteuid() == 0:
        foreign = Path(temporary, f"{name}1")
        foreign.mkdir()
        os.chown(foreign, 54321, -1)
        before.add(foreign)
    scratch.sweep()
    assert set(temporary.iterdir()) == before

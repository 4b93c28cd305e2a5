"""The level that is stated is the one that a canary found, and nothing weaker than what is required starts."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from service.sandbox import spawn
from service.sandbox.control import Ready
from service.sandbox.levels import Level, Wall
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from tensorkiln.errors import UnavailableError
from tensorkiln.trust import is_at_least
from tests.service.forked import forked_services

from .boxes import WALLS, failure, in_sandbox, needs_landlock, ping
from .external import needs_bwrap
from .shared import Boxes

BOXES = pytest.mark.xdist_group("boxes")
EXTERNAL = pytest.param(Wall.BWRAP, Level.EXTERNAL, id="external", marks=needs_bwrap)


def test_levels_are_ordered_by_strength() -> None:
    assert [level.value for level in Level] == ["process", "landlock+seccomp", "external"]
    assert is_at_least(Level.EXTERNAL, Level.LANDLOCK)
    assert is_at_least(Level.LANDLOCK, Level.LANDLOCK)
    assert not is_at_least(Level.PROCESS, Level.LANDLOCK)


@BOXES
@pytest.mark.parametrize(("wall", "level"), [*WALLS, EXTERNAL])
def test_each_wall_gives_its_level_and_jobs_run_behind_it(boxes: Boxes, wall: Wall, level: Level) -> None:
    async def runs(sandbox: Sandbox) -> None:
        ready = await sandbox.start()
        assert Level(ready.level) is level, ready.shortcomings
        assert bool(ready.shortcomings) is (level is not Level.EXTERNAL)
        await ping(sandbox)
        assert (await failure(sandbox, "segfault")).details["signal"] == "SIGSEGV"
        await ping(sandbox)

    boxes.run(runs, wall=wall)


@BOXES
def test_a_weaker_level_says_what_a_job_could_do(boxes: Boxes) -> None:
    async def says(sandbox: Sandbox) -> None:
        left_out, could = (await sandbox.start()).shortcomings
        assert left_out == "KILN_ISOLATION=process leaves Landlock out"
        assert could.startswith("a task can read a file that is not its own")

    boxes.run(says, wall=Wall.PROCESS)


@pytest.mark.parametrize(
    ("wall", "required", "reason"),
    [
        (Wall.PROCESS, Level.LANDLOCK, r"KILN_REQUIRE_ISOLATION=landlock\+seccomp.*level process only: KILN_ISOLATION"),
        (Wall.PROCESS, Level.EXTERNAL, r"KILN_REQUIRE_ISOLATION=external.*level process only"),
        pytest.param(
            *(Wall.AUTO, Level.EXTERNAL, r"level landlock\+seccomp only: .*KILN_ISOLATION=bwrap gives it one"),
            marks=needs_landlock,
        ),
    ],
)
def test_nothing_weaker_than_what_is_required_starts(wall: Wall, required: Level, reason: str) -> None:
    async def start() -> None:
        sandbox = Sandbox(wall=wall, required=required)
        with pytest.raises(UnavailableError, match=reason):
            await sandbox.start()
        assert sandbox.pid is None
        await sandbox.close()

    asyncio.run(start())


def test_a_wall_that_is_not_installed_is_not_replaced_by_a_weaker_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    async def start() -> None:
        with pytest.raises(UnavailableError, match="no bwrap on the PATH"):
            await Sandbox(wall=Wall.BWRAP).start()

    asyncio.run(start())


def test_a_wall_that_does_not_hold_is_not_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bwrap that only runs the program: every process is still in the namespaces of the service."""
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    async def start() -> None:
        with pytest.raises(UnavailableError, match=r"KILN_ISOLATION=bwrap, but tasks get the level \S+ only"):
            await Sandbox(wall=Wall.BWRAP).start()

    asyncio.run(start())


@needs_landlock
def test_a_fork_server_that_is_weaker_than_the_first_does_not_replace_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def weakens(sandbox: Sandbox) -> None:
        monkeypatch.setattr(sandbox, "wall", Wall.PROCESS)
        first = sandbox.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while sandbox.pid == first:
            await asyncio.sleep(0.01)
        with pytest.raises(UnavailableError, match=r"had the level of isolation landlock\+seccomp, now process only"):
            await ping(sandbox)

    in_sandbox(weakens)


def test_the_service_names_the_setting_that_keeps_it_from_starting(tmp_path: Path) -> None:
    settings = {"KILN_HOME": str(tmp_path), "KILN_ISOLATION": "process", "KILN_REQUIRE_ISOLATION": "landlock+seccomp"}
    environment = {**os.environ, **settings}
    done = forked_services().run("service", "--port", "0", cwd=Path.cwd(), env=environment)
    assert done.returncode != 0
    assert "KILN_REQUIRE_ISOLATION=landlock+seccomp, but tasks get the level process only" in done.stdout + done.stderr


def test_the_least_that_is_required_is_nothing_more_than_a_process() -> None:
    assert Settings.model_fields["require_isolation"].default is Level.PROCESS
    assert Settings.model_fields["isolation"].default is Wall.AUTO


def test_the_service_is_in_namespaces_of_its_own_kind() -> None:
    assert [name.partition(":")[0] for name in spawn.namespaces()] == list(spawn.NAMESPACES)
    assert Ready(1, ()).level == Level.PROCESS

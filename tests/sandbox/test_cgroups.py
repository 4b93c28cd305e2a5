"""The cgroup of each process, where a service has a part of the tree of version 2 for itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from service.sandbox import verdict
from service.sandbox.cgroups import LEAF
from service.sandbox.control import Ended, Limits
from tensorkiln.errors import LostWorkerError, ResourceExhaustedError
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server, children

WITHIN_S = 10.0
MEMORY_MIB = 256
COMPILE = encoded(compile_body())


@pytest.mark.parametrize(
    ("grown_mib", "ran_out", "kind"),
    [(50, True, ResourceExhaustedError), (99, False, LostWorkerError), (99, None, ResourceExhaustedError)],
)
def test_a_cgroup_tells_whether_a_kill_was_for_memory(
    grown_mib: int, ran_out: bool | None, kind: type[Exception]
) -> None:
    ended = Ended(1, int(signal.SIGKILL), False, grown_mib + 60, grown_mib, 0.1, "", ran_out=ran_out)
    assert type(verdict.verdict(ended, Limits(3.0, 100, 4), "codegen")) is kind


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A part of the tree where services start; it shares out memory, and is removed with all that is in it."""
    with _part() as made:
        monkeypatch.setattr(Server, "cgroup", made)
        yield made


@contextmanager
def _part() -> Generator[Path]:
    root = Path("/sys/fs/cgroup")
    try:
        controllers = {*(root / "cgroup.subtree_control").read_text().split()}
    except OSError:
        controllers = set[str]()
    if not controllers >= {"memory", "pids", "cpu"} or not os.access(root, os.W_OK):
        pytest.skip("no cgroup of version 2 here shares out memory, tasks and processors, and may be written to")
    made = root / f"kiln-test-{os.getpid()}"
    made.mkdir()
    try:
        yield made
    finally:
        (made / "cgroup.kill").write_text("1")
        _wait(lambda: "populated 0" in (made / "cgroup.events").read_text())
        for group in (*made.iterdir(), made):
            if group.is_dir():
                group.rmdir()


def test_each_process_is_in_a_cgroup_with_its_limits(part: Path, tmp_path: Path) -> None:
    with Server(tmp_path, fails=True, compile_deadline_s=3, compile_memory_mib=MEMORY_MIB) as server:
        assert "cgroup" in server.http.get("/capabilities").json()["isolation"]["mechanisms"]
        members = {*map(int, (part / LEAF / "cgroup.procs").read_text().split())}
        assert members >= {server.pid, *server.fork_servers}
        compiles = {job: _group_of(job) for job in children(server.fork_server)}
        assert compiles
        for job, group in compiles.items():
            assert group.parent == part
            assert (group / "cgroup.procs").read_text().split() == [str(job)]
            assert (group / "pids.max").read_text() == "1\n"
            assert (group / "cpu.max").read_text() == "100000 100000\n"
        answer = server.compile(COMPILE, "hang")
        assert answer.json()["code"] == "compile.deadline_exceeded"
        _wait(lambda: not any(compiles[job].is_dir() for job in compiles if not Path(f"/proc/{job}").exists()))
    _wait(lambda: [each.name for each in part.iterdir() if each.is_dir()] == [LEAF])


def test_memory_that_an_address_space_does_not_count_is_bounded(
    part: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_in_memory = Path("/dev/shm", f"kiln-test-{os.getpid()}")
    files_in_memory.mkdir()
    monkeypatch.setenv("TMPDIR", str(files_in_memory))
    try:
        with Server(tmp_path, fails=True, compile_memory_mib=MEMORY_MIB) as server:
            answer = server.compile(COMPILE, "many_files").json()
            assert answer["code"] == "compile.resource_exhausted"
            assert answer["details"] | {"resource": "memory", "signal": "SIGKILL"} == answer["details"]
            assert server.compile(COMPILE).status_code == 200
    finally:
        shutil.rmtree(files_in_memory, ignore_errors=True)


def test_a_cgroup_that_others_are_in_is_left_alone(part: Path, tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (part / "cgroup.procs").write_text(str(other.pid))
        with Server(tmp_path) as server:
            assert "cgroup" not in server.http.get("/capabilities").json()["isolation"]["mechanisms"]
            assert _group_of(other.pid) == part == _group_of(server.pid)
    finally:
        other.communicate(b"\n")


def test_cgroups_of_a_killed_service_are_removed_by_the_next(
    part: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(tmp_path)
    left = {_group_of(job) for job in children(server.fork_server)}
    assert left
    (part / "cgroup.kill").write_text("1")
    server.stop(signal.SIGKILL)
    _wait(lambda: "populated 0" in (part / "cgroup.events").read_text())
    assert any(group.is_dir() for group in left)
    monkeypatch.setattr(Server, "cgroup", part / LEAF)
    with Server(tmp_path) as again:
        assert "cgroup" in again.http.get("/capabilities").json()["isolation"]["mechanisms"]
        _wait(lambda: not any(group.is_dir() for group in left))
        assert again.compile(COMPILE).status_code == 200


def test_workers_share_a_part_of_the_tree(part: Path, tmp_path: Path) -> None:
    with Server(tmp_path, workers=2) as server:
        for _ in range(4):
            assert "cgroup" in server.http.get("/capabilities").json()["isolation"]["mechanisms"]
        assert server.compile(COMPILE).status_code == 200


def _group_of(pid: int) -> Path:
    (mine,) = (line[3:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
    return Path(f"/sys/fs/cgroup{mine}")


def _wait(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end
        with suppress(OSError):
            time.sleep(0.01)

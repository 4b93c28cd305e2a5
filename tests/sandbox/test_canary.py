"""Nothing that a job tries to break out with succeeds, and all of it would where nothing confines it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.sandbox.child import Outlet
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.levels import Wall
from service.sandbox.sandbox import Sandbox
from service.settings import Settings

from .boxes import in_sandbox, needs_landlock
from .external import needs_bwrap
from .warm_ups import reach

SECRET = "KILN_TEST_SECRET"
TAKEN_OVER = "tests.sandbox.warm_ups:take_over"
FILE_MIB = 200


@dataclass(frozen=True)
class Surroundings:
    """What is around a service: a file of its user, somebody who listens in three ways, and a secret."""

    planted: Path
    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket

    def header(self, pid: int) -> dict[str, object]:
        """What a canary tries to reach."""
        limits = Settings().limits
        return {
            "planted": str(self.planted),
            "pid": pid,
            "file_bytes": FILE_MIB << 20,
            "memory_bytes": (limits.memory_mib << 20) + 1,
        }

    @property
    def within_reach(self) -> dict[str, object]:
        """What a job tries to read and to send to."""
        return {
            "files": ["/etc/shadow", "/proc/1/environ", f"/proc/{os.getpid()}/environ", str(self.planted)],
            "addresses": [
                ("tcp", self.tcp.getsockname()),
                ("udp", self.udp.getsockname()),
                ("unix", self.unix.getsockname()),
            ],
        }


@pytest.fixture
def proxy_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Surroundings]:
    monkeypatch.setenv(SECRET, "do not tell")
    planted = tmp_path / "planted"
    planted.write_text("do not read")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(tmp_path / "listener"))
        unix.listen()
        yield Surroundings(planted, tcp, udp, unix)


@pytest.mark.faults
@pytest.mark.parametrize(
    "wall", [pytest.param(Wall.AUTO, marks=needs_landlock), pytest.param(Wall.BWRAP, marks=needs_bwrap)]
)
def test_no_attempt_to_break_out_succeeds(proxy_environment: Surroundings, wall: Wall) -> None:
    async def tries(sandbox: Sandbox) -> None:
        limits = Settings().limits
        assert limits.file_mib < FILE_MIB
        assert sandbox.pid is not None
        header = proxy_environment.header(sandbox.pid)
        findings = (
            await sandbox.run("canary", Message(header), Limits(60.0, limits.memory_mib, limits.file_mib))
        ).header
        assert findings["escaped"] == []
        assert findings["hindered"] == []
        assert len(findings["refused"]) >= 45
        reached = await sandbox.run("reach", Message(proxy_environment.within_reach), limits)
        assert reached.header == {"reached": []}
        assert proxy_environment.planted.read_text() == "do not read"
        assert os.stat(proxy_environment.planted).st_size == len("do not read")

    in_sandbox(tries, warm_ups=(TAKEN_OVER,), wall=wall)


def test_even_without_landlock_no_process_no_network_and_no_limit_is_to_be_had(proxy_environment: Surroundings) -> None:
    async def tries(sandbox: Sandbox) -> None:
        limits = Settings().limits
        assert sandbox.pid is not None
        findings = (await sandbox.run("canary", Message(proxy_environment.header(sandbox.pid)), limits)).header
        told = ("read", "list", "write a file that", "make", "rename", "link", "share memory", "open the memory")
        assert [name for name in findings["escaped"] if not name.startswith(told)] == []
        assert findings["hindered"] == []
        reached = (await sandbox.run("reach", Message(proxy_environment.within_reach), limits)).header["reached"]
        assert not {"tcp", "udp", "unix"} & {*reached}

    in_sandbox(tries, warm_ups=(TAKEN_OVER,), wall=Wall.PROCESS)


UNCONFINED = """
import json, os, subprocess, sys
from dataclasses import asdict
from service.sandbox.frames import Message
from service.sandbox.tasks.checks import canary
from service.sandbox.child import Outlet
import socket
ours, theirs = socket.socketpair()
print(json.dumps(canary(Message(json.loads(sys.argv[1])), Outlet(theirs)).header))
"""

# What a kernel, an unprivileged user or a container may refuse without any doing of ours.
ELSEWHERE = (
    *("link", "share memory", "read the memory", "open the memory"),
    *("trace", "handle its own", "have a ring", "use a keyring", "leave", "raise a limit", "write a file above"),
    *("have memory above", "read the environment", "have another process", "start a program"),
)


def test_the_same_attempts_succeed_where_nothing_confines_them(proxy_environment: Surroundings, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as victim:
        try:
            header = json.dumps(proxy_environment.header(victim.pid))
            done = subprocess.run(
                [sys.executable, "-c", UNCONFINED, header], capture_output=True, text=True, cwd=tmp_path, check=True
            )
        finally:
            victim.kill()
    findings = json.loads(done.stdout)
    assert [name for name in findings["refused"] if not name.startswith(ELSEWHERE)] == []
    assert len(findings["escaped"]) >= 25
    assert findings["hindered"] == []


def test_all_within_reach_is_reached_where_nothing_confines_a_job(proxy_environment: Surroundings) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reached = reach(Message(proxy_environment.within_reach), Outlet(theirs)).header["reached"]
    assert {str(proxy_environment.planted), "tcp", "udp", "unix"} <= {*reached}


@needs_landlock
def test_a_job_sees_no_variable_of_the_service(proxy_environment: Surroundings) -> None:
    async def looks(sandbox: Sandbox) -> None:
        assert sandbox.pid is not None
        assert os.environ[SECRET].encode() not in Path(f"/proc/{sandbox.pid}/environ").read_bytes()

    in_sandbox(looks)

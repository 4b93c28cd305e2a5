"""A compile lets those go first that answer soon, and takes nobody else down with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from service.sandbox.confine import NICENESS
from service.sandbox.levels import Wall
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


def niceness(pid: int) -> tuple[int, str]:
    """That of a process, and of its session where the kernel shares the processors among sessions."""
    group = Path(f"/proc/{pid}/autogroup")
    session = group.read_text().rpartition("nice ")[2].strip() if os.getsid(pid) == pid and group.exists() else ""
    return os.getpriority(os.PRIO_PROCESS, pid), session


def settled(pid: int, expected: int) -> tuple[int, str]:
    """Its niceness, once it is the expected one or a while has passed: a job has a name before it gives way."""
    deadline = time.monotonic() + 10
    while (found := niceness(pid)) not in ((expected, ""), (expected, str(expected))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def crash(server: Server, answer: Future[httpx2.Response]) -> None:
    """End a compile that hangs. A crash is begun again, as often as the service does."""
    while not answer.done():
        for compiling in server.jobs("compile"):
            with suppress(ProcessLookupError):
                os.kill(compiling, signal.SIGABRT)
        time.sleep(0.2)
    assert answer.result().status_code == 422


@pytest.mark.xdist_group("services behind walls")
def test_a_compile_gives_way_and_the_service_does_not(served: Callable[[Wall], Server]) -> None:
    server = served(Wall.AUTO)
    with ThreadPoolExecutor() as pool:
        leader = os.getsid(server.pid)
        others = (server.pid, *server.fork_servers, leader)
        before = [niceness(pid) for pid in others]
        at_rest = set(server.jobs("compile"))
        answer = pool.submit(server.compile, encoded(compile_body(graph(rows=9))), "hang")
        while not (compiling := set(server.jobs("compile")) - at_rest):
            time.sleep(0.01)
        found, session = settled(compiling.pop(), NICENESS)
        assert found == NICENESS
        assert session in ("", str(NICENESS))
        assert [niceness(pid) for pid in others] == before
        crash(server, answer)


def test_a_service_that_gives_way_more_than_its_compiles_compiles_as_it_does(tmp_path: Path) -> None:
    nicer = NICENESS + 5
    # The machine may have much to do for others, who all go first.
    with Server(tmp_path / "kiln", niceness=nicer, fails=True, compile_deadline_s=600) as server:
        server.http.timeout = 250.0
        with ThreadPoolExecutor() as pool:
            at_rest = set(server.jobs("compile"))
            answer = pool.submit(server.compile, encoded(compile_body()), "hang")
            while not (compiling := sorted(set(server.jobs("compile")) - at_rest)):
                time.sleep(0.1)  # looking takes processor time from the process that is looked for
            assert settled(compiling[0], nicer)[0] == nicer
            crash(server, answer)
        assert server.compile(encoded(compile_body())).status_code == 200

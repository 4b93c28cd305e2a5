"""What a service says of its isolation, in its capabilities and in each program; a crash leaves its reproducer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from service.sandbox.confine import NICENESS
from service.sandbox.levels import Level, Wall
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

from .boxes import WALLS
from .external import needs_bwrap

pytestmark = pytest.mark.xdist_group("services behind walls")


@pytest.mark.parametrize(
    ("wall", "level"), [*WALLS, pytest.param(Wall.BWRAP, Level.EXTERNAL, id="external", marks=needs_bwrap)]
)
def test_a_compile_at_each_level_says_so_and_its_crash_can_be_repeated(
    served: Callable[[Wall], Server], wall: Wall, level: Level
) -> None:
    server = served(wall)
    isolation = server.http.get("/capabilities").json()["isolation"]
    assert isolation["level"] == level
    assert {"fork", "rlimits", "no_new_privs", "seccomp"} <= {*isolation["mechanisms"]}
    assert ("bwrap" in isolation["mechanisms"]) is (wall is Wall.BWRAP)
    body = encoded(compile_body(graph("sin", rows=3)))
    crash = server.compile(body, "segfault").json()
    assert (crash["code"], crash["details"]["signal"]) == ("compile.crashed", "SIGSEGV")
    reproducer = server.http.get(f"/artifacts/{crash['details']['reproducer']}")
    assert reproducer.status_code == 200
    again = server.compile(reproducer.content).json()
    assert again["details"]["reproducer"] == crash["details"]["reproducer"]
    (program,) = server.compile(body).json()["programs"]
    assert program["provenance"]["isolation"] == level


def test_the_level_changes_no_byte_of_what_is_compiled(served: Callable[[Wall], Server]) -> None:
    body = encoded(compile_body(graph("sin", rows=5)))
    compiled: list[tuple[str, list[str]]] = []
    for wall in (Wall.PROCESS, Wall.AUTO):
        (program,) = served(wall).compile(body).json()["programs"]
        compiled.append((program["digest"], [kernel["artifact"] for kernel in program["kernels"]]))
    assert compiled[0] == compiled[1]


@pytest.mark.parametrize(("fails", "kind", "niceness"), [("hang", "compile", NICENESS), ("prepare:hang", "prepare", 0)])
def test_a_compile_gives_way_to_what_is_answered_soon(
    served: Callable[[Wall], Server], fails: str, kind: str, niceness: int
) -> None:
    server = served(Wall.AUTO)
    others = set(server.jobs(kind))
    sending = threading.Thread(target=server.compile, args=(encoded(compile_body(graph(rows=7))), fails))
    sending.start()
    while not (running := set(server.jobs(kind)) - others):
        time.sleep(0.01)
    time.sleep(0.2)
    assert os.getpriority(os.PRIO_PROCESS, running.pop()) == niceness
    while sending.is_alive():  # it is begun again once
        for job in set(server.jobs(kind)) - others:
            with suppress(ProcessLookupError):
                os.kill(job, signal.SIGKILL)
        time.sleep(0.05)

"""A worker that could not work says why and ends; it takes no orders."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.farm.members import Member
from tests.farm.rabbit import Rabbit
from tests.faults.conftest import require_broker
from tests.faults.test_commands import run

NOBODY = "amqp://127.0.0.1:1//"


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("KILN_REQUIRE_ISOLATION", "external", "external"),
        ("KILN_KEYS", "file/keys", "There can be no keys"),
        ("KILN_STORE", "file/store", "store"),
    ],
)
def test_a_worker_that_could_not_work_ends_before_it_looks_for_orders(
    tmp_path: Path, variable: str, value: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    stated = value if variable == "KILN_REQUIRE_ISOLATION" else str(tmp_path / value)
    done = run("service.worker", home=tmp_path, **{"KILN_BROKER": NOBODY, variable: stated})
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "The worker cannot start: " in done.stderr
    assert reason in done.stderr.splitlines()[-1]


@pytest.mark.xdist_group("farm")
def test_a_worker_ends_when_one_of_its_processes_cannot_begin(tmp_path: Path) -> None:
    require_broker()
    rabbit = Rabbit(tmp_path / "rabbit")
    rabbit.start()
    variables = {"KILN_HOME": str(tmp_path), "KILN_BROKER": rabbit.url, "KILN_CONCURRENCY": "1"}
    worker = Member("service.worker", [], variables, tmp_path / "log")
    worker.start()
    try:
        worker.await_ready()
        keys = tmp_path / "keys"
        keys.rename(tmp_path / "before")
        keys.touch()
        for child in Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        assert worker.stop() == 1
        assert worker.lines("a process of the worker cannot begin; the worker ends")
    finally:
        worker.kill()
        rabbit.close()

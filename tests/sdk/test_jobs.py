"""Compiles that are not waited for, followed by both clients."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln import AsyncClient, Client, Graph
from tensorkiln.errors import CrashedError, JobCancelledError, RequestError, UnavailableError
from tensorkiln.sdk import JobEvent
from tests.sdk.conftest import Connect
from tests.sdk.hung import broken_off, opened
from tests.sdk.scripted import ScriptedServer
from tests.service.bodies import graph
from tests.service.server import Server

JOB = "0" * 32


def told(state: str = "queued", **fields: Any) -> bytes:
    return json.dumps({"id": JOB, "state": state, "programs": [], **fields}).encode()


def test_a_job_is_waited_for_and_its_program_runs(served: str, layer: Graph, tmp_path: Path) -> None:
    x, w = np.ones((4, 8), np.float32), np.full((8, 3), 0.5, np.float32)
    with Client(served, cache_dir=tmp_path) as client:
        job = client.submit(layer)
        (compiled,) = job.wait(60)
        np.testing.assert_array_equal(client.load(compiled)(x, w, n=4)[0], np.full((4, 3), 4, np.float32))
        assert job.status().state == "done"
        assert [event.kind for event in job.events()][-1] == "done"
        assert job.cancel().state == "done"
        again = client.submit(layer, ["cpu:x86-64-v2", "cpu:aarch64"]).wait(60)
        assert [len(each.target.features) > 0 for each in again] == [True, True]


def test_progress_is_told_stage_by_stage(served: str, tmp_path: Path) -> None:
    events: list[JobEvent] = []
    with Client(served, cache_dir=tmp_path) as client:
        program = client.compile(graph("sqrt", rows=51), on_progress=events.append)
        assert program.compiled.cache.status == "miss"
        assert [event.kind for event in events][:2] == ["queued", "started"]
        assert events[-1].data["state"] == "done"
        stages = [event.stage for event in events if event.kind == "stage"]
        assert stages[0] == "parse"
        assert "codegen" in stages
        assert {event.target for event in events if event.kind == "stage"} == {None, 0}


def test_a_job_that_is_cancelled_says_so_to_those_who_wait(busy: Server, tmp_path: Path) -> None:
    with Client(busy.url, cache_dir=tmp_path) as client:
        job = client.submit(graph("sqrt", rows=54), "cpu")
        assert job.status().state == "queued"
        with pytest.raises(UnavailableError, match=r"did not end within 0\.2 s"):
            job.wait(0.2)
        assert job.cancel().state == "cancelled"
        with pytest.raises(JobCancelledError, match=job.id):
            job.wait()


def stop(event: JobEvent) -> None:
    raise ZeroDivisionError(event.kind)


@pytest.mark.parametrize(
    ("timeout_s", "progress", "error", "said"),
    [(60.0, stop, ZeroDivisionError, "^queued$"), (0.5, lambda _: None, UnavailableError, "within")],
    ids=["a progress that raises", "no more time"],
)
def test_a_compile_that_is_given_up_cancels_its_job(
    busy: Server,
    tmp_path: Path,
    timeout_s: float,
    progress: Callable[[JobEvent], None],
    error: type[Exception],
    said: str,
) -> None:
    with Client(busy.url, cache_dir=tmp_path, timeout_s=timeout_s) as client:
        before = opened(busy)
        with pytest.raises(error, match=said):
            client.compile(graph("sqrt", rows=55), "cpu", on_progress=progress)
        assert opened(busy) <= before


def test_a_task_that_is_cancelled_cancels_its_job(busy: Server, tmp_path: Path) -> None:
    async def leave() -> None:
        async with AsyncClient(busy.url, cache_dir=tmp_path) as client:
            queued = asyncio.Event()
            task = asyncio.create_task(
                client.compile(graph("sqrt", rows=57), "cpu", on_progress=lambda _: queued.set())
            )
            await queued.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    before = opened(busy)
    asyncio.run(leave())
    assert opened(busy) <= before


WAITING = """
import asyncio, sys
from tensorkiln import AsyncClient, Client
from tests.service.bodies import graph
def told(event): print(event.kind, flush=True)
async def compile():
    async with AsyncClient(sys.argv[1], cache_dir=sys.argv[2]) as client:
        await client.compile(graph("sqrt", rows=58), "cpu", on_progress=told)
if sys.argv[3] == "True":
    asyncio.run(compile())
else:
    with Client(sys.argv[1], cache_dir=sys.argv[2]) as client:
        client.compile(graph("sqrt", rows=58), "cpu", on_progress=told)
"""


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_cancels_the_job_at_the_service(busy: Server, tmp_path: Path, is_async: bool) -> None:
    before = opened(busy)
    command = [sys.executable, "-W", "error", "-c", WAITING, busy.url, str(tmp_path), str(is_async)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "queued\n"
        assert len(opened(busy) - before) == 1
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert opened(busy) <= before


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_cancels_an_unheard_job(scripted: ScriptedServer, tmp_path: Path, is_async: bool) -> None:
    scripted.answers_with(told(), status=202, delay_s=0.5)
    scripted.answers_with(told("cancelled"))
    command = [sys.executable, "-W", "error", "-c", WAITING, scripted.url, str(tmp_path), str(is_async)]
    ended = broken_off(command, lambda: scripted.received)
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
    assert [each[:2] for each in scripted.requests] == [("POST", "/compile"), ("DELETE", f"/jobs/{JOB}")]


def test_the_command_cancels_its_job_on_ctrl_c(busy: Server, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(graph("sqrt", rows=59)))
    before = opened(busy)
    command = [sys.executable, "-m", "tensorkiln.cli", "compile", "graph.json", "-t", "cpu", "--url", busy.url]
    environment = {**os.environ, "KILN_HOME": str(tmp_path)}
    # A job of an earlier test may end meanwhile.
    ended = broken_off(command, lambda: opened(busy) - before, cwd=tmp_path, env=environment)
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")
    while opened(busy) - before:
        time.sleep(0.02)


def test_a_compile_that_fails_fails_its_job(scripted: ScriptedServer, tmp_path: Path) -> None:
    problem = CrashedError("It crashed.", details={"signal": "SIGSEGV"}).to_problem()
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {}), ("1.2", "done", {"state": "failed"})])
    scripted.answers_with(told("failed", error=problem))
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(CrashedError) as crashed:
        client.submit(graph()).wait()
    assert crashed.value.details == {"signal": "SIGSEGV"}
    assert scripted.received[0].headers["prefer"] == "respond-async"
    assert [each.path for each in scripted.received[1:]] == [f"/jobs/{JOB}/events", f"/jobs/{JOB}"]


def test_events_go_on_where_a_connection_was_lost(scripted: ScriptedServer, connect: Connect) -> None:
    scripted.answers_with(told(), status=202)
    scripted.tells([("1.1", "queued", {}), ("1.2", "started", {"queue_ms": 1})])
    scripted.answers_with(cut=True)
    scripted.refuses_with(503, "infra.unavailable", "restarting", retry_after="0")
    scripted.tells([("1.3", "stage", {"stage": "parse", "target": None})])
    scripted.tells([("1.4", "done", {"state": "done"})])
    events = connect(scripted.url).submit(graph()).events()
    assert [event.id for event in events] == ["1.1", "1.2", "1.3", "1.4"]
    resumed = [each.headers.get("last-event-id") for each in scripted.received[1:]]
    assert resumed == [None, "1.2", "1.2", "1.2", "1.3"]
    assert {each.headers["accept"] for each in scripted.received[1:]} == {"text/event-stream"}


@pytest.mark.parametrize(
    "identifier", ["../../admin", "a b\n", "a\n", "http://evil/", "?x", "\xe9", "", " ", ".", "x" * 65, 7]
)
def test_an_id_that_is_no_path_is_refused(scripted: ScriptedServer, tmp_path: Path, identifier: str | int) -> None:
    scripted.answers_with(json.dumps({"id": identifier, "state": "queued"}).encode(), status=202)
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(UnavailableError, match="at /id"):
        client.compile(graph(), "cpu", on_progress=lambda _: None)
    assert [each[:2] for each in scripted.requests] == [("POST", "/compile")]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"event: stage\ndata: [1\n\n", "text/event-stream", "event"),
        (b"event: stage\ndata: " + b"[" * 100_000 + b"\n\n", "text/event-stream", "event"),
        (b"<html>", "text/html", "text/event-stream"),
    ],
    ids=["no JSON", "deep", "a page"],
)
def test_other_streams_are_refused(scripted: ScriptedServer, tmp_path: Path, body: bytes, kind: str, said: str) -> None:
    scripted.answers_with(told(), status=202)
    scripted.answers_with(body, headers={"Content-Type": kind}, stays_s=0.0)
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(UnavailableError, match=said):
        client.submit(graph()).wait()


def test_a_client_that_is_offline_has_no_jobs(tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path, offline=True) as client, pytest.raises(RequestError, match="offline"):
        client.submit(graph())


def test_a_job_alone_has_a_key_and_is_the_same_when_it_is_asked_for_again(
    scripted: ScriptedServer, connect: Connect
) -> None:
    for _ in range(2):
        scripted.answers_with(cut=True)
        scripted.refuses_with(503, "infra.unavailable", "restarting", retry_after="0")
        scripted.answers_with(told(), status=202)
    client = connect(scripted.url)
    for _ in range(2):
        client.submit(graph())
    keys = [each.headers["idempotency-key"] for each in scripted.received]
    assert len(keys) == 6
    assert keys[:3] == [keys[0]] * 3
    assert keys[3:] == [keys[3]] * 3
    assert keys[0] != keys[3]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", key) for key in keys)
    scripted.answers = []
    scripted.answers_with(b'{"valid": true}')
    client.validate(graph())
    assert "idempotency-key" not in scripted.received[-1].headers

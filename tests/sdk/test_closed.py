"""Clients that are closed: before a call, and by another thread or task while a call is under way."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tensorkiln import AsyncClient, Client
from tensorkiln.errors import UnavailableError
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, Answer, ScriptedServer
from tests.service.bodies import graph

LONG_S = 60.0
ACCEPTED = b'{"id": "j1", "state": "queued"}'
STREAM = b'id: 1\nevent: queued\ndata: {"state": "queued"}\n\n'


def arrived(scripted: ScriptedServer, count: int) -> None:
    until = time.monotonic() + LONG_S
    while len(scripted.received) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


BUSY = Answer(503, b"busy", {"Retry-After": "40"})
TWO = [Answer(), Answer(delay_s=LONG_S)]
JOB = [Answer(202, ACCEPTED), Answer(200, STREAM, EVENTS, stays_s=LONG_S)]
CALLS: dict[str, tuple[list[Answer], Callable[[Client], object]]] = {
    "waits for its answer": ([Answer(delay_s=LONG_S)], lambda client: client.compile(graph(), "cpu")),
    "is on a connection that was used before": (TWO, lambda client: [client.capabilities() for _ in TWO]),
    "waits to be sent again": ([BUSY], lambda client: client.capabilities()),
    "has a part of its answer": ([Answer(body=b'{"targets"', stays_s=LONG_S)], lambda client: client.capabilities()),
    "waits for a job": (JOB, lambda client: client.submit(graph(), "cpu").wait()),
    "follows a job": (JOB, lambda client: list(client.submit(graph(), "cpu").events())),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_ends_when_its_client_is_closed(scripted: ScriptedServer, tmp_path: Path, call: str) -> None:
    answers, called = CALLS[call]
    scripted.answers = [*answers]
    with ThreadPoolExecutor(1) as pool:
        client = Client(scripted.url, cache_dir=tmp_path, timeout_s=LONG_S)
        calling = pool.submit(called, client)
        arrived(scripted, len(answers))
        began = time.monotonic()
        client.close()
        error = calling.exception(LONG_S)
    assert time.monotonic() - began < LONG_S / 2
    assert isinstance(error, UnavailableError), error
    assert "client is closed" in error.message
    assert len(scripted.received) == len(answers)


def test_all_the_threads_of_a_client_are_told(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with(delay_s=LONG_S)
    client = Client(scripted.url, cache_dir=tmp_path, timeout_s=LONG_S)
    # More than the connections that are kept, and than one lock would let through by chance.
    with ThreadPoolExecutor(24) as pool:
        calls = [pool.submit(client.capabilities) for _ in range(24)]
        arrived(scripted, 24)
        client.close()
        errors = [call.exception(LONG_S) for call in calls]
    assert [str(error) for error in errors] == ["This client is closed; make another one."] * 24


def test_closing_while_calls_begin_and_end_says_nothing_else(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with()
    found: list[BaseException] = []

    def calling(client: Client) -> None:
        try:
            while True:
                client.capabilities()
        except BaseException as error:
            found.append(error)

    for _ in range(20):
        client = Client(scripted.url, cache_dir=tmp_path)
        threads = [threading.Thread(target=calling, args=(client,)) for _ in range(4)]
        before = len(scripted.received)
        for thread in threads:
            thread.start()
        arrived(scripted, before + 4)
        client.close()
        for thread in threads:
            thread.join(LONG_S)
    assert {(type(error), str(error)) for error in found} == {
        (UnavailableError, "This client is closed; make another one.")
    }
    assert len(found) == 80


@pytest.mark.parametrize("call", ["waits for its answer", "waits to be sent again"])
async def test_a_task_ends_when_its_client_is_closed(scripted: ScriptedServer, tmp_path: Path, call: str) -> None:
    scripted.answers = [*CALLS[call][0]]
    client = AsyncClient(scripted.url, cache_dir=tmp_path, timeout_s=LONG_S)
    calling = asyncio.create_task(client.capabilities())
    await asyncio.to_thread(arrived, scripted, 1)
    await asyncio.sleep(0.2)
    await client.close()
    with pytest.raises(UnavailableError, match="client is closed"):
        await asyncio.wait_for(calling, LONG_S / 4)
    assert len(scripted.received) == 1


def test_a_closed_client_compiles_no_further_graph(scripted: ScriptedServer, connect: Connect, tmp_path: Path) -> None:
    scripted.answers_with()
    either = connect(scripted.url)
    either.close()
    with pytest.raises(UnavailableError, match="client is closed"):
        list(either.compile_many([graph()], ["cpu"]))
    client = Client(scripted.url, cache_dir=tmp_path)
    begun_before = client.compile_many([graph()], ["cpu"])
    client.close()
    with pytest.raises(UnavailableError, match="client is closed"):
        list(begun_before)
    assert scripted.received == []


def test_a_client_that_nobody_else_knows_lives_as_long_as_its_results(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.refuses_with(422, "graph.invalid", "no such var")
    results = Client(scripted.url, cache_dir=tmp_path).compile_many([graph()] * 3, ["cpu"], concurrency=1)
    gc.collect()
    assert [str(outcome.error) for outcome in results] == ["no such var"] * 3


FORKING = """
import os, sys
from tensorkiln import Client
from tensorkiln.errors import RequestError
from tests.service.bodies import graph
def left(results):
    return 7
def closed(results):
    results.close()
    return 7
def asked(results):
    try:
        next(results)
    except RequestError as error:
        return 7 if "forked" in error.message else 1
wires = [graph("sqrt", rows=rows) for rows in range(70, 74)]
with Client(sys.argv[1], cache_dir=sys.argv[2]) as client:
    seen = []
    results = client.compile_many(wires, ["cpu"], concurrency=2)
    for outcome, leaves in zip(results, (left, closed, asked, left)):
        seen.append(outcome.graph)
        child = os.fork()
        if child == 0:
            sys.exit(leaves(results))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert outcome.error is None
    assert sorted(seen) == [0, 1, 2, 3]
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_forked_among_the_results_leaves_them_to_its_parent(served: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", FORKING, served, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0) as done:
        try:
            out, err = done.communicate(timeout=LONG_S)
        except subprocess.TimeoutExpired:
            # With the child, which holds the pipes open.
            os.killpg(done.pid, signal.SIGKILL)
            raise
    assert (done.returncode, out) == (0, "done\n"), err

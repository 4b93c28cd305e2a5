"""An interrupted call leaves nothing half done, here or at its service, and no other caller has its connection."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tensorkiln import AsyncClient, Client, tasks
from tensorkiln.immediate import run
from tensorkiln.runner import BlockingRunner
from tests.faults.chain import chain
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_closed import arrived
from tests.service.server import Server, await_end
from tests.service.test_presence import await_in_flight


class Interrupting:
    """Somebody presses Ctrl-C a moment after the work has begun, which goes on until then at least."""

    def __init__(self) -> None:
        self._has_begun, self._is_pressed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._press)
        self._thread.start()

    def wait(self) -> None:
        self._has_begun.set()
        assert self._is_pressed.wait(60)

    def close(self) -> None:
        self._has_begun.set()
        self._thread.join()

    def _press(self) -> None:
        self._has_begun.wait()
        time.sleep(0.2)  # until whoever has begun it waits for it
        os.kill(os.getpid(), signal.SIGINT)
        self._is_pressed.set()


@pytest.fixture
def interrupting() -> Generator[Interrupting]:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("a signal is the main thread's")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = Interrupting()
    yield interrupting
    interrupting.close()
    signal.signal(signal.SIGINT, before)


def after(
    seconds: float, undone: list[str], error: Exception | None = None, interrupting: Interrupting | None = None
) -> str:
    async def work() -> str:
        if interrupting is not None:
            await asyncio.to_thread(interrupting.wait)
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return "done"

    async def undo(what: str) -> None:
        undone.append(what)

    return run(BlockingRunner().in_loop(tasks.wholly(work(), undo)))


def test_an_uninterrupted_call_returns_the_result() -> None:
    undone: list[str] = []
    assert after(0.0, undone) == "done"
    with pytest.raises(ZeroDivisionError):
        after(0.0, undone, ZeroDivisionError())
    assert undone == []


@pytest.mark.parametrize("error", [None, ZeroDivisionError()], ids=["what is done", "what fails"])
def test_an_interrupted_call_waits_for_its_cleanup(interrupting: Interrupting, error: Exception | None) -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        after(0.3, undone, error, interrupting)
    assert undone == (["done"] if error is None else [])


def test_slow_cleanup_ends_in_the_background(interrupting: Interrupting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SETTLE_S", 0.05)
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        after(0.4, undone, interrupting=interrupting)
    assert undone == []
    while not undone:
        time.sleep(0.02)
    assert undone == ["done"]


@pytest.fixture(params=[KeyboardInterrupt, ZeroDivisionError], ids=["Ctrl-C", "a handler of one's own"])
def raised(request: pytest.FixtureRequest) -> Generator[type[BaseException]]:
    """What the handler of SIGINT raises meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("a signal is the main thread's")

    def handle(number: int, frame: object) -> None:
        raise request.param

    before = signal.signal(signal.SIGINT, handle)
    yield request.param
    signal.signal(signal.SIGINT, before)


def test_left_requests_delay_no_other(scripted: ScriptedServer, tmp_path: Path, raised: type[BaseException]) -> None:
    def interrupt() -> None:
        arrived(scripted, 1)
        os.kill(os.getpid(), signal.SIGINT)

    scripted.answers_with(b'{"first": 1}', delay_s=60.0)
    scripted.answers_with(b'{"second": 2}')
    interrupting = threading.Thread(target=interrupt)
    with Client(scripted.url, cache_dir=tmp_path, timeout_s=30) as client:
        interrupting.start()
        with pytest.raises(raised):
            client.capabilities()
        interrupting.join()
        assert client.capabilities() == {"second": 2}


SCRIPT = """
import asyncio, json, sys
from tensorkiln import AsyncClient, Client
url, home, graph, kind = sys.argv[1:]
wire = json.loads(open(graph).read())
async def compile():
    async with AsyncClient(url, cache_dir=home) as client:
        await client.compile(wire, "cpu")
client = Client(url, cache_dir=home)
try:
    asyncio.run(compile()) if kind == "AsyncClient" else client.compile(wire, "cpu")
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that has nothing under way when a test ends."""
    with Server(tmp_path_factory.mktemp("server"), compile_deadline_s=600) as server:
        yield server


def stopped(server: Server) -> int:
    """The process of a compile, which takes from now on as long as the test likes."""
    process = server.at_work()
    os.kill(process, signal.SIGSTOP)
    return process


@pytest.mark.xdist_group("sdk interrupted")
@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_ctrl_c_ends_the_compile_though_the_program_goes_on(server: Server, tmp_path: Path, kind: str) -> None:
    wire = tmp_path / "graph.json"
    wire.write_text(json.dumps(chain(4, 750)))
    command = [sys.executable, "-W", "error", "-c", SCRIPT, server.url, str(tmp_path / "client"), str(wire), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        process = stopped(server)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        await_end(process)
        assert child.poll() is None
        child.communicate("")
    assert child.returncode == 0


@pytest.mark.xdist_group("sdk interrupted")
async def test_a_cancelled_task_ends_its_compile_and_no_other(server: Server, tmp_path: Path) -> None:
    async with AsyncClient(server.url, cache_dir=tmp_path) as client:
        asked = [asyncio.create_task(client.compile(chain(4, 750), "cpu")) for _ in range(2)]
        process = await asyncio.to_thread(stopped, server)
        await asyncio.to_thread(await_in_flight, server, 2)
        asked[0].cancel()
        await asyncio.to_thread(await_in_flight, server, 1)
        assert server.jobs("compile") == [process]
        asked[1].cancel()
        await asyncio.to_thread(await_end, process)
        await asyncio.gather(*asked, return_exceptions=True)
        assert all(each.cancelled() for each in asked)

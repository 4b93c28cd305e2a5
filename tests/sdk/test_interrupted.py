"""A compile that its program gives up is given up at the service, also without a job."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorkiln import AsyncClient
from tests.faults.chain import chain
from tests.service.server import Server, await_end
from tests.service.test_presence import await_in_flight

pytestmark = pytest.mark.xdist_group("sdk interrupted")
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


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_ctrl_c_ends_the_compile_at_the_service_though_the_program_goes_on(
    server: Server, tmp_path: Path, kind: str
) -> None:
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

"""Several processes serve at one address, over one store, as one service does."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from service.server.listen import READY, listen
from service.server.prefork import Workers
from service.settings import Settings
from tests.sandbox.processes import alive
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import JSON, Server, cache, children
from tests.service.test_start import SERVICE, failed

pytestmark = pytest.mark.xdist_group("workers")
PLACE = re.compile(r'process="(\d)"')


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("two"), workers=2, concurrency=2) as running:
        yield running


def asked_of(server: Server, place: str) -> httpx2.Client:
    """A connection to the worker at this place; an idle worker takes each new one, once it has started."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        client = httpx2.Client(base_url=server.url, timeout=60, verify=False)
        found = PLACE.search(client.get("/metrics").text)
        if found is not None and found[1] == place:
            return client
        client.close()
        time.sleep(0.05)
    raise AssertionError(f"nothing is answered by {place}")


def post(client: httpx2.Client, body: bytes, **headers: str) -> httpx2.Response:
    return client.post("/compile", content=body, headers={**JSON, **headers})


def test_processes_share_programs_and_jobs(two: Server) -> None:
    with closing(asked_of(two, "0")) as first, closing(asked_of(two, "1")) as second:
        body = encoded(compile_body(graph("sin")))
        assert cache(post(first, body)) == ("miss", "first request")
        assert cache(post(second, body)) == ("hit", "same request")
        job = post(first, encoded(compile_body(graph("log2"))), Prefer="respond-async").json()["id"]
        while (state := second.get(f"/jobs/{job}").json()["state"]) != "done":
            assert state in ("queued", "running")
            time.sleep(0.02)
        for place, client in enumerate((first, second)):
            lines = [line for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
            assert all(f'process="{place}"' in line for line in lines), "figures in series of its own"
            assert any(line.startswith("kiln_queue_depth{") for line in lines)


def test_a_killed_process_is_started_again_and_none_outlives_the_service(two: Server) -> None:
    before = frozenset(children(two.pid))
    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    while len(now := frozenset(children(two.pid))) < 2 or killed in now:
        assert httpx2.get(f"{two.url}/healthz", verify=False).status_code == 200
        time.sleep(0.1)
    asked_of(two, "0").close()
    asked_of(two, "1").close()
    assert "a worker process died and is restarted" in two.log()
    workers = children(two.pid)
    assert len(workers) == 2
    two.stop(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


WORKER = """
import signal, sys
for number, status in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
    signal.signal(number, lambda *_, status=status: sys.exit(status))
print(sys.argv[1], flush=True)
signal.alarm(60)  # so long a test may take, whatever becomes of it
signal.pause()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_ends_them_all(capfd: pytest.CaptureFixture[str], number: signal.Signals, status: int) -> None:
    with closing(listen("127.0.0.1", 0, None)) as listener:
        serving = asyncio.create_task(Workers([sys.executable, "-c", WORKER, READY], 2, listener).serve())
        while READY not in capfd.readouterr().out:
            await asyncio.sleep(0.01)
        running = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children(os.getpid())}
        workers = [child for child, command in running.items() if WORKER.encode() in command]
        assert len(workers) == 2
        os.kill(os.getpid(), number)
        assert await serving == status
        assert not any(map(alive, workers))


def test_an_error_at_the_start_is_reported_once(home: Path) -> None:
    home.mkdir()
    (home / "file").write_text("")
    (line,) = failed(home, (*SERVICE, "--workers", "2"), KILN_STORE=str(home / "file" / "store"))
    assert "KILN_STORE" in line


def test_they_share_what_the_machine_has() -> None:
    settings = Settings(
        concurrency=8, queue=9, intake_mib=400, answer_memory_mib=64, memory_mib=1000, tenant_in_flight=7
    )
    each = settings.for_one_of(3)
    assert (each.concurrency, each.queue, each.intake_mib) == (2, 3, 133)
    assert (each.answer_memory_mib, each.memory_mib, each.tenant_in_flight) == (21, 333, 7)
    least = settings.for_one_of(100)
    assert (least.concurrency, least.queue, least.intake_mib, least.memory_mib) == (1, 1, 86, 256)

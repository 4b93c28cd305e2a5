"""Readiness turns red when a part fails that a compile needs, says which, and turns green again."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.observe.readiness import await_green, await_red, failed
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server


def test_a_fork_server_that_stands_still_is_seen_and_replaced(tmp_path: Path) -> None:
    with Server(tmp_path / "one", fails=True) as one, Server(tmp_path / "two", fails=True) as two:
        stopped = {one: "reader", two: "fork_server"}
        first = {server: getattr(server, which) for server, which in stopped.items()}
        for pid in first.values():
            os.kill(pid, signal.SIGSTOP)
        # Both wait for a verdict at once.
        with ThreadPoolExecutor(2) as pool:
            for reason in pool.map(lambda server: await_red(server.url, "canary"), stopped):
                assert "no result" in reason
        for server, which in stopped.items():
            await_green(server.url)
            assert getattr(server, which) != first[server]


def test_a_floor_above_what_is_free_is_told_with_both_figures(home: Path) -> None:
    with Server(home, disk_floor_mib=1 << 40) as server:
        assert f"KILN_DISK_FLOOR_MIB is {1 << 40}" in await_red(server.url, "disk")
        assert server.compile(encoded(compile_body())).status_code == 200


def test_a_disk_that_fills_is_seen_until_there_is_room_again(home: Path) -> None:
    gib = 1 << 30
    home.mkdir()
    free = shutil.disk_usage(home).free
    if free < 12 * gib:
        pytest.skip("the disk has no room for the file")
    ballast = home / "ballast"
    with Server(home, disk_floor_mib=(free - 4 * gib) >> 20) as server:
        assert failed(server.url) == {}
        with ballast.open("wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, 8 * gib)
            except OSError as error:
                pytest.skip(f"the file system keeps no room: {error}")
        assert "MiB are free" in await_red(server.url, "disk")
        ballast.unlink()
        await_green(server.url)


@pytest.mark.xdist_group("narrow")
def test_a_queue_that_does_not_move_is_seen(narrow: Server) -> None:
    body = encoded(compile_body())
    threads = [threading.Thread(target=narrow.compile, args=(body, "hang")) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert "KILN_READY_QUEUE_AGE_S is 0.3" in await_red(narrow.url, "queue")
    for thread in threads:
        thread.join()
    await_green(narrow.url)


def test_the_canary_is_compiled_at_most_once_in_ten_seconds_and_is_not_stored(home: Path) -> None:
    with Server(home) as server:
        while server.jobs("trial"):  # that of the start is ending
            time.sleep(0.01)
        compiled: set[int] = set()
        begin = time.monotonic()
        while time.monotonic() - begin < 3:
            assert failed(server.url) == {}
            compiled |= set(server.jobs("trial"))
            time.sleep(0.1)
        assert compiled == set()
        assert 'kiln_job_seconds_count{kind="trial",outcome="ok"} 1.0' in server.http.get("/metrics").text
        stored = [path for path in (home / "store").rglob("*") if path.is_file()]
        assert {path.parent.name for path in stored} <= {"owners"}, "a service writes that it lives, and nothing else"


@pytest.mark.xdist_group("narrow")
def test_a_store_with_a_record_that_services_once_wrote_is_taken(narrow: Server) -> None:
    assert (narrow.home / "store" / "canary").read_bytes() == b"{}"
    assert failed(narrow.url) == {}

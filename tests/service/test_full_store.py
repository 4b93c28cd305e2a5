"""A store that takes small files and no larger ones: what has happened is told, and what is stored is given."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from service.store.attempts import MAX_CRASHES
from tests.observe.readiness import await_green
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache

SMALL = 16 << 10


@contextmanager
def small_files_only(server: Server) -> Generator[None]:
    """The service itself writes no file beyond SMALL bytes for the block; its fork servers were there before."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (SMALL, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


def long(name: str) -> dict[str, object]:
    """A graph whose text and answers take more than SMALL bytes: a chain of which every fourth var is an output."""
    wire, last = graph(), 400
    chain = [
        {"node": "unary", "op": "neg", "in_var": var - 1, "out_var": var, "dtype": "float32"} for var in range(2, last)
    ]
    return {**wire, "name": name, "nodes": [wire["nodes"][0], *chain], "output_vars": [*range(4, last, 4)]}


def test_an_answer_and_a_reproducer_that_cannot_be_kept_are_remembered_by_their_service(home: Path) -> None:
    with Server(home, fails=True) as server:
        first = server.compile(encoded(compile_body(long("long"))))
        assert first.status_code == 200, first.text
        assert len(first.content) > SMALL
        renamed = encoded(compile_body(long("renamed")))
        with small_files_only(server):
            answer = server.compile(renamed)
            assert answer.status_code == 200, answer.text
            assert cache(answer) == ("hit", "same action")
            assert cache(server.compile(renamed)) == ("hit", "same request")
            assert "File too large" in server.log()
            for number in range(3):
                problem = server.compile(encoded(compile_body(long(f"poison{number}"))), "always:segfault").json()
                assert (problem["code"], problem["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
                assert problem["details"].get("cached", False) is (number > 0)
                assert "reproducer" not in problem["details"]


@contextmanager
def small_disk(place: Path) -> Generator[None]:
    """A disk of a few MiB at `place`, where the tests may mount one."""
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a disk takes a privilege")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 10)):
            pass


def test_a_service_starts_on_a_full_disk_and_serves_what_is_stored(tmp_path: Path) -> None:
    disk, body = tmp_path / "disk", encoded(compile_body())
    settings: dict[str, Any] = {"fails": True, "store": disk / "store", "disk_floor_mib": 0}
    with small_disk(disk):
        with Server(tmp_path / "home", **settings) as server:
            first = server.compile(body)
            assert first.status_code == 200
        fill(disk)
        with Server(tmp_path / "home", **settings) as server:
            hit = server.compile(body)
            assert cache(hit) == ("hit", "same request")
            assert hit.json()["programs"][0]["kernels"] == first.json()["programs"][0]["kernels"]
            unready = server.http.get("/readyz")
            assert (unready.status_code, list(unready.json()["details"]["failed"])) == (503, ["store"])
            refused = server.compile(encoded(compile_body(graph("sin"))))
            assert (refused.status_code, refused.json()["code"]) == (503, "infra.unavailable")
            job = server.post("/compile", encoded(compile_body(graph("log2"))), Prefer="respond-async")
            assert (job.status_code, job.json()["code"]) == (503, "infra.unavailable")
            (disk / "filling").unlink()
            assert server.compile(encoded(compile_body(graph("sin")))).status_code == 200
            await_green(server.url)
            assert "defect" not in server.log()

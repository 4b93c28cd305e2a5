"""Nothing is compiled for a client that has left, and nothing that others wait for is given up with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.observe.figures import Figures
from tests.service.bodies import compile_body, encoded
from tests.service.server import HOOK, Server, await_end


class Asking:
    """A request that is sent and not answered yet."""

    def __init__(self, server: Server, path: str, body: bytes, **headers: str) -> None:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in headers.items())]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def leave(self) -> None:
        self._socket.close()

    def half_close(self) -> None:
        """Send no more, and go on waiting."""
        self._socket.shutdown(socket.SHUT_WR)

    def is_closed(self) -> bool:
        """Whether the connection ends without an answer."""
        with self._socket:
            return self._socket.recv(1) == b""

    def status(self) -> int:
        """The status of the answer, once it is there."""
        with self._socket, self._socket.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def chain(length: int = 3000) -> dict[str, Any]:
    """A graph that takes long enough to compile to be met doing so."""
    nodes: list[dict[str, Any]] = [{"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [4]}]
    nodes += [
        {"node": "unary", "op": "sqrt", "in_var": var, "out_var": var + 1, "dtype": "float32"} for var in range(length)
    ]
    return {"schema": 1, "name": "chain", "nodes": nodes, "input_vars": [0], "output_vars": [length]}


def await_job(server: Server, kind: str) -> int:
    while not (found := server.jobs(kind)):
        time.sleep(0.005)
    return found[0]


def in_flight(server: Server) -> int:
    """The requests under way, less the one that asks."""
    found = re.search(r"^kiln_http_requests_in_flight (\d+)", server.http.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return int(found[1]) - 1


def await_in_flight(server: Server, count: int) -> None:
    while in_flight(server) != count:
        time.sleep(0.01)


@pytest.mark.parametrize(("hook", "kind"), [("hang", "compile"), ("prepare:hang", "answer")])
def test_a_compile_that_nobody_waits_for_ends_with_its_process_and_frees_its_slot(
    home: Path, hook: str, kind: str
) -> None:
    with Server(home, test_hooks=1, concurrency=1, queue=0, compile_deadline_s=600) as server:
        asking = Asking(server, "/compile", encoded(compile_body()), **{HOOK: hook})
        process = await_job(server, kind)
        asking.leave()
        await_end(process)
        await_in_flight(server, 0)
        assert server.compile(encoded(compile_body())).status_code == 200
        assert '"status": 499' in server.log()
        assert "defect" not in server.log()


def test_a_client_that_sends_no_more_has_left(home: Path) -> None:
    with Server(home, test_hooks=1, compile_deadline_s=600) as server:
        asking = Asking(server, "/compile", encoded(compile_body()), **{HOOK: "hang"})
        process = await_job(server, "compile")
        asking.half_close()
        assert asking.is_closed()
        await_end(process)


def test_a_compile_goes_on_for_the_last_of_those_who_wait_for_it(home: Path) -> None:
    with Server(home, compile_deadline_s=600) as server:
        body = encoded(compile_body(chain()))
        first = Asking(server, "/compile", body)
        process = await_job(server, "compile")
        os.kill(process, signal.SIGSTOP)  # It takes as long as this test likes.
        others = [Asking(server, "/compile", body) for _ in range(2)]
        await_in_flight(server, 3)
        time.sleep(0.3)
        first.leave()
        others[0].leave()
        await_in_flight(server, 1)
        assert server.jobs("compile") == [process]
        os.kill(process, signal.SIGCONT)
        assert others[1].status() == 200


def test_it_ends_when_the_last_of_them_has_left(home: Path) -> None:
    with Server(home, compile_deadline_s=600) as server:
        body = encoded(compile_body(chain()))
        asking = [Asking(server, "/compile", body)]
        process = await_job(server, "compile")
        os.kill(process, signal.SIGSTOP)
        asking.append(Asking(server, "/compile", body))
        await_in_flight(server, 2)
        for each in asking:
            each.leave()
        await_end(process)


def test_a_client_that_comes_back_at_once_finds_its_compile_under_way(home: Path) -> None:
    with Server(home, compile_deadline_s=600) as server:
        body = encoded(compile_body(chain()))
        lost = Asking(server, "/compile", body)
        process = await_job(server, "compile")
        os.kill(process, signal.SIGSTOP)
        lost.leave()
        again = Asking(server, "/compile", body)
        while not Figures(server)("kiln_http_requests_total", status="499"):
            time.sleep(0.05)
        assert server.jobs("compile") == [process]
        os.kill(process, signal.SIGCONT)
        assert again.status() == 200


def test_a_job_is_not_given_up_with_the_client_that_waits_for_it(home: Path) -> None:
    with Server(home, test_hooks=1, compile_deadline_s=2) as server:
        waiting = Asking(server, "/compile", encoded(compile_body()), **{HOOK: "hang", "Prefer": "wait=60"})
        await_job(server, "compile")
        (job,) = [path.name for path in (home / "store" / "jobs" / "open").iterdir()]
        waiting.leave()
        while (found := server.http.get(f"/jobs/{job}").json())["state"] == "running":
            time.sleep(0.05)
        assert found["error"]["code"] == "compile.deadline_exceeded"

"""Nothing is compiled for a client that has left, and nothing that others wait for is given up with it."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.observe.figures import Figures
from tests.sdk.hung import opened
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import Server, await_end, go_on


class Asking:
    def __init__(self, server: Server, path: str, body: bytes, fails: str = "", **headers: str) -> None:
        body = failing(body, fails) if fails else body
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
        with self._socket:
            return self._socket.recv(1) == b""

    def status(self, compiling: int) -> int:
        """The status of the answer, once the process of its compile, which has stopped itself, has gone on."""
        with ThreadPoolExecutor(1) as pool, self._socket, self._socket.makefile("rb") as answer:
            line = pool.submit(answer.readline)
            go_on(compiling, line)
            return int(line.result().split()[1])


def await_in_flight(server: Server, count: int) -> None:
    """Come back when so many requests are under way, besides the one that asks."""
    while Figures(server)("kiln_http_requests_in_flight") != count + 1:
        time.sleep(0.01)


@pytest.mark.xdist_group("narrow")
@pytest.mark.parametrize(("fails", "kind"), [("hang", "compile"), ("prepare:hang", "prepare")])
def test_a_compile_that_nobody_waits_for_ends(narrow: Server, fails: str, kind: str) -> None:
    body, before = encoded(compile_body(graph(rows=10 + len(fails)))), len(narrow.log())
    asking = Asking(narrow, "/compile", body, fails=fails)
    process = narrow.at_work(kind)
    asking.leave()
    await_end(process)
    await_in_flight(narrow, 0)
    assert narrow.compile(body).status_code == 200
    log = narrow.log()[before:]
    assert '"status": 499' in log
    assert "defect" not in log


@pytest.mark.xdist_group("pair")
def test_a_client_that_sends_no_more_has_left(patient: Server) -> None:
    asking = Asking(patient, "/compile", encoded(compile_body()), fails="hang")
    process = patient.at_work()
    asking.half_close()
    assert asking.is_closed()
    await_end(process)


@pytest.mark.xdist_group("pair")
def test_a_compile_goes_on_for_the_last_of_those_who_wait_for_it(patient: Server) -> None:
    body = failing(encoded(compile_body()), "stop")
    first = Asking(patient, "/compile", body)
    process = patient.stopped()
    others = [Asking(patient, "/compile", body) for _ in range(2)]
    await_in_flight(patient, 3)
    time.sleep(0.3)
    first.leave()
    others[0].leave()
    await_in_flight(patient, 1)
    assert patient.jobs("compile") == [process]
    assert others[1].status(process) == 200


@pytest.mark.xdist_group("pair")
def test_a_client_that_comes_back_at_once_finds_its_compile_under_way(patient: Server) -> None:
    await_in_flight(patient, 0)
    body = failing(encoded(compile_body()), "stop")
    before = Figures(patient)("kiln_http_requests_total", status="499")
    lost = Asking(patient, "/compile", body)
    process = patient.stopped()
    lost.leave()
    again = Asking(patient, "/compile", body)
    while Figures(patient)("kiln_http_requests_total", status="499") == before:
        time.sleep(0.05)
    assert patient.jobs("compile") == [process]
    assert again.status(process) == 200


def test_a_job_is_not_given_up_with_the_client_that_waits_for_it(server: Server) -> None:
    before = opened(server)
    waiting = Asking(server, "/compile", encoded(compile_body()), fails="hang", Prefer="wait=60")
    while not (mine := opened(server) - before):
        time.sleep(0.005)
    (job,) = mine
    process = server.at_work()
    waiting.leave()
    time.sleep(0.3)
    assert server.jobs("compile") == [process]
    assert server.http.delete(f"/jobs/{job}").json()["state"] == "cancelled"

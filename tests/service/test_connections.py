"""Connections that say nothing, say it slowly or fetch no answer shut nobody else out, and a slow one arrives."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from service.fairness.shares import ALPHA, is_fair
from service.http.connections import KEPT_FILES, connections
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

HEAD = b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextmanager
def connected(server: Server) -> Generator[socket.socket]:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        yield connection


def said(connection: socket.socket) -> bytes:
    """What the service says until it closes the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            found += part
    return found


def held_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_a_head_that_is_too_long_is_refused(server: Server) -> None:
    with connected(server) as connection:
        for _ in range(9):
            with suppress(ConnectionError):  # it has been answered before its end
                connection.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 8192)
            time.sleep(0.02)
        assert said(connection).startswith(b"HTTP/1.1 431 ")


def test_a_head_and_a_body_that_do_not_come_end_their_connections(tmp_path: Path) -> None:
    # So many seconds it waits for what is to arrive.
    with Server(tmp_path, arrival_s=1) as impatient, ExitStack() as held:
        silent, halting, kept, slow = (held.enter_context(connected(impatient)) for _ in range(4))
        halting.sendall(HEAD)
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        kept.sendall(b"GET /healthz HTTP/1.1\r\n")
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert said(silent) == said(halting) == b""
        assert said(kept).count(b"HTTP/1.1 200") == 1
        answer = said(slow)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"request.invalid"' in answer
        assert b'"arrived":1' in answer
        assert impatient.http.get("/healthz").status_code == 200


def test_those_who_hold_connections_open_shut_nobody_out(tmp_path: Path) -> None:
    room = 40
    with Server(tmp_path, files=KEPT_FILES + room) as server, ExitStack() as held:
        for _ in range(4 * room):
            held.enter_context(connected(server)).sendall(HEAD)
        assert server.http.get("/healthz").status_code == 200
        assert server.compile(encoded(compile_body(graph(rows=3)))).status_code == 200
        assert "out of system resource" not in server.log()


EXPECT = b"Expect: 100-continue\r\n"


def test_a_body_that_is_refused_before_it_is_sent_is_not_waited_for(server: Server) -> None:
    with connected(server) as waiting:
        waiting.sendall(HEAD + EXPECT + b"Content-Length: 99999999\r\n\r\n")
        answer = said(waiting)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.xdist_group("guarded")
def test_a_body_of_two_lengths_is_the_last_of_its_connection(server: Server) -> None:
    lengths = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(HEAD + lengths + b"2\r\n{}\r\n0\r\n\r\n" + smuggled)
        answers = said(connection)
    assert answers.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answers.lower()
    assert answers.count(b"HTTP/1.1 ") == 1


def test_a_stranger_is_not_asked_for_a_body(guarded: Guarded) -> None:
    body = b"{}"
    head = HEAD + EXPECT + b"Content-Length: %d\r\n" % len(body)
    with connected(guarded) as stranger:
        stranger.sendall(head + b"\r\n")
        answer = said(stranger)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()
    with connected(guarded) as known:
        known.sendall(head + b"Authorization: Bearer %b\r\n\r\n" % guarded.key("expecting").encode())
        assert known.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        known.sendall(body)
        answer = known.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" not in answer.lower()


def test_a_request_without_a_body_keeps_its_connection_whatever_it_expects(server: Server) -> None:
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    with connected(server) as kept:
        kept.sendall(get + EXPECT + b"\r\n" + get + b"Connection: close\r\n\r\n")
        assert said(kept).count(b"HTTP/1.1 200 ") == 2


def test_bodies_that_are_held_back_take_a_bounded_part_of_the_memory(tmp_path: Path) -> None:
    body = b" " * (40 << 20)
    with Guarded(tmp_path, intake_mib=96, arrival_s=60) as server, ExitStack() as held:
        key, other = server.key("hog"), server.key("other")
        before = held_mib(server.pid)
        head = f"{HEAD.decode()}Authorization: Bearer {key}\r\nContent-Length: {len(body) + 1}\r\n\r\n"
        connections = [held.enter_context(connected(server)) for _ in range(6)]
        for connection in connections:
            connection.sendall(head.encode() + body)
        refused, _, _ = select.select(connections[1:], [], [], 30)
        assert b"429" in refused[0].recv(64)
        assert held_mib(server.pid) - before < 2 * 96
        more = server.send(key, "POST", "/compile", b" " * (50 << 20))
        assert (more.status_code, more.json()["details"]["limit"]) == (429, "held_bytes")
        assert more.headers["Retry-After"] == "1"
        small = encoded(compile_body(graph(rows=5)))
        assert server.send(other, "POST", "/compile", small).status_code == 200
        held.close()
        while server.send(key, "POST", "/validate", b" " * (50 << 20)).status_code == 429:
            time.sleep(0.1)


@pytest.mark.parametrize("most", [20, 100, 1000])
def test_the_newest_connection_is_accepted(most: int) -> None:
    taken: list[int] = []
    for _ in range(3):
        own = 0
        while is_fair(own, sum(taken) + own, most):
            own += 1
        taken.append(own)
    assert 0 < taken[0] <= most * ALPHA / (ALPHA + 1) + 1
    assert all(taken)
    assert sum(taken) <= most


HEAD_S = STALLED_S = 0.4
BODY = bytes(32 << 20)
MOST_AT_ONCE = 2 << 20
LITTLE = bytes(48 << 10)


async def application(scope: Any, receive: Any, send: Any) -> None:
    content = LITTLE if scope["path"] == "/little" else BODY
    headers = [(b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


@contextmanager
def serving(*, most: int = 100, buffer: int = 4096, stalled_s: float = STALLED_S) -> Generator[tuple[int, set[Any]]]:
    protocol = connections(HEAD_S, stalled_s)
    protocol.most = most  # type: ignore[attr-defined]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # What the kernel takes is as good as fetched.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        config = uvicorn.Config(application, http=protocol, lifespan="off", log_level=logging.ERROR, ws="none")
        server = uvicorn.Server(config)
        thread = Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            yield listener.getsockname()[1], server.server_state.connections
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def asking(port: int, path: str, *more: str, buffer: int = 4096) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", port))
    connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode())
    return connection


def fetched(connection: socket.socket, pause_s: float = 0.0) -> int:
    """How many bytes come, at most so many for every pause."""
    count = 0
    with suppress(ConnectionResetError, TimeoutError):
        while count < len(BODY):
            part = len(connection.recv(MOST_AT_ONCE, socket.MSG_WAITALL))
            if not part:
                break
            count += part
            time.sleep(pause_s)
    return count


def test_an_answer_that_is_fetched_slowly_arrives() -> None:
    roomy, stalled_s, pause_s = 1 << 20, 2.0, 0.15
    assert len(BODY) / MOST_AT_ONCE * pause_s > stalled_s > 10 * pause_s

    def slowly(more: list[str]) -> int:
        with asking(port, "/", *more, buffer=roomy) as connection:
            return fetched(connection, pause_s)

    with serving(buffer=roomy, stalled_s=stalled_s) as (port, _), ThreadPoolExecutor() as pool:
        assert all(count >= len(BODY) for count in pool.map(slowly, ([], ["Connection: close"])))


def test_an_answer_that_nobody_fetches_ends_its_connection() -> None:
    with serving() as (port, held), ExitStack() as stack:
        for path, more in (("/", []), ("/", ["Connection: close"]), ("/little", ["Connection: close"])):
            stack.enter_context(asking(port, path, *more))
        until = time.monotonic() + 5
        while len(held) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        while held and time.monotonic() < until + 20:
            time.sleep(0.05)
        assert not held


def test_those_who_fetch_nothing_keep_nobody_out() -> None:
    # None is given up for its own sake as long as the test takes.
    with serving(most=4, stalled_s=60.0) as (port, _), ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(asking(port, "/little", "Connection: close"))
        time.sleep(0.1)
        with asking(port, "/little", "Connection: close") as connection:
            assert fetched(connection) > len(LITTLE)

"""An answer that is fetched slowly arrives; one that nobody fetches is given up, and keeps nobody out."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import Any

import uvicorn

from service.http.connections import connections

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
    """The port of a server, and its connections."""
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

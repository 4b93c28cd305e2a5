"""Large bodies go to a URL in a content coding, and are the same bytes to whoever reads them."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from service.http.coded_bodies import zstd
from tensorkiln import AsyncClient, Client, coding
from tensorkiln.coding import CODED_FROM_BYTES, coded
from tensorkiln.embedded import Address
from tensorkiln.errors import RequestError
from tensorkiln.immediate import run
from tensorkiln.runner import BlockingRunner
from tensorkiln.transport import Transport
from tests.bench.large_graph import NODES, large_graph
from tests.loopback import body_of, reply
from tests.sdk.scripted import Request, ScriptedServer
from tests.trust.proxy import Proxy

LARGE = json.dumps({"numbers": list(range(CODED_FROM_BYTES // 4))}).encode()


def plain(request: Request) -> bytes:
    match request.headers.get("content-encoding"):
        case "zstd":
            return zstd.decompress(request.body)
        case "gzip":
            return gzip.decompress(request.body)
        case other:
            assert other is None
            return request.body


@pytest.fixture
def transport(scripted: ScriptedServer) -> Iterator[Transport]:
    opened = Transport(BlockingRunner(), lambda: Address(scripted.url), 10.0)
    yield opened
    run(opened.close())


@pytest.mark.parametrize(("named", "least"), [("zstd", 25), ("gzip", 10)])
def test_a_service_reads_a_large_graph_in_either_coding(
    served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, least: int
) -> None:
    if named == "gzip":
        monkeypatch.setattr(coding, "_CODING", ("gzip", coding._gzip))  # pyright: ignore[reportPrivateUsage]
    wire = large_graph()

    async def validate(url: str) -> dict[str, Any]:
        async with AsyncClient(url, cache_dir=tmp_path) as client:
            return await client.validate(wire)

    with Proxy(served) as passing:
        with Client(passing.url, cache_dir=tmp_path) as client:
            assert client.validate(wire)["valid"]
        assert asyncio.run(validate(passing.url))["valid"]
    assert NODES == 10_000
    assert [stated for stated, _ in passing.sizes] == [named] * 2
    assert all(size * least < len(wire) for _, size in passing.sizes)


def test_a_repeated_request_sends_the_same_bytes_and_codes_them_once(
    transport: Transport, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    name, compress = coding._CODING  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(coding, "_CODING", (name, lambda body: (made.append(len(body)), compress(body))[1]))
    scripted.answers_with(b"busy", status=503)
    scripted.answers_with(cut=True)
    scripted.answers_with(b"done")
    assert run(transport.post("/compile", LARGE)) == b"done"
    assert len({(each.body, each.headers["content-encoding"]) for each in scripted.received}) == 1
    assert [plain(each) for each in scripted.received] == [LARGE] * 3
    assert made == [len(LARGE)]


def test_a_service_that_refuses_a_coding_is_asked_plainly(transport: Transport, scripted: ScriptedServer) -> None:
    scripted.refuses_with(415, "request.invalid", "Content-Encoding 'zstd'")
    scripted.answers_with(b"done")
    assert run(transport.post("/compile", LARGE)) == b"done"
    assert run(transport.post("/compile", LARGE)) == b"done"
    assert ["content-encoding" in each.headers for each in scripted.received] == [True, False, False]
    assert [plain(each) for each in scripted.received] == [LARGE] * 3


def test_a_refusal_of_the_plain_body_is_final(transport: Transport, scripted: ScriptedServer) -> None:
    scripted.refuses_with(415, "request.invalid", "no JSON")
    with pytest.raises(RequestError, match="no JSON"):
        run(transport.post("/compile", LARGE))
    assert len(scripted.received) == 2


@pytest.mark.parametrize(
    "body",
    [
        b" " * (CODED_FROM_BYTES - 1),
        b" " * (4 << 20),
        random.Random(0).randbytes(CODED_FROM_BYTES),
    ],
    ids=["short", "swells too much", "does not shrink"],
)
def test_incompressible_bodies_are_sent_uncoded(transport: Transport, scripted: ScriptedServer, body: bytes) -> None:
    scripted.answers_with(b"done")
    run(transport.post("/compile", body))
    (request,) = scripted.received
    assert "content-encoding" not in request.headers
    assert request.body == body


def test_coded_bodies_are_deterministic() -> None:
    assert coded(LARGE) == coded(LARGE)


@pytest.fixture
def socket_file(tmp_path: Path) -> Iterator[tuple[str, list[Any]]]:
    """A server on a socket file, as an embedded service is, and the Content-Encoding of what it gets."""
    received: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.headers.get("Content-Encoding"), len(body_of(self))))
            reply(self, 200, {}, b"done")

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    path = str(tmp_path / "s")
    with socketserver.ThreadingUnixStreamServer(path, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield path, received
        server.shutdown()
        thread.join()


def test_nothing_is_coded_for_a_socket_file(socket_file: tuple[str, list[Any]]) -> None:
    path, received = socket_file
    transport = Transport(BlockingRunner(), lambda: Address("http://embedded", path), 10.0)
    assert run(transport.post("/compile", LARGE)) == b"done"
    run(transport.close())
    assert received == [(None, len(LARGE))]

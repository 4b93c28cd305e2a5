"""Large bodies go to a URL in a content coding, and answers larger than a service's are given up while they come."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from service.http.coded_bodies import zstd
from service.settings import Settings
from tensorkiln import AsyncClient, Client, coding
from tensorkiln.coding import CODED_FROM_BYTES, coded
from tensorkiln.embedded import Address
from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.immediate import run
from tensorkiln.runner import BlockingRunner
from tensorkiln.transport import MAX_ANSWER_BYTES, Transport
from tests.bench.large_graph import NODES, large_graph
from tests.loopback import body_of, reply
from tests.sdk.conftest import Connect
from tests.sdk.scripted import EVENTS, PROBLEM, Request, ScriptedServer
from tests.sdk.test_jobs import told
from tests.service.bodies import graph
from tests.trust.forgery import Proxy

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
    assert coded(LARGE) == coded(LARGE)
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


MOST = 3 << 20
CODED = {"Content-Encoding": "gzip"}
Ask = Callable[..., Any]


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.transport.MAX_ANSWER_BYTES", MOST)


@pytest.fixture
def ask(connect: Connect, scripted: ScriptedServer, low: None) -> Ask:
    return lambda method, *arguments: getattr(connect(scripted.url), method)(*arguments)


def of_size(size: int) -> bytes:
    """A JSON object of so many bytes in gzip, which is a thousandth of them."""
    return gzip.compress(b" " * (size - 2) + b"{}", 1)


def test_an_answer_counts_decoded(scripted: ScriptedServer, ask: Ask) -> None:
    scripted.answers_with(of_size(MOST), headers=CODED)
    assert ask("capabilities") == {}
    scripted.answers = []
    scripted.answers_with(of_size(MOST + 1), headers=CODED)
    with pytest.raises(LimitExceededError, match=f"GET /capabilities .*{MOST}") as refused:
        ask("capabilities")
    assert refused.value.details["limit"] == "answer_bytes"
    assert refused.value.details["maximum"] == MOST < refused.value.details["actual"]
    assert len(scripted.received) == 2


def test_it_is_given_up_before_it_is_there_coded_or_not_and_be_it_an_error(scripted: ScriptedServer, ask: Ask) -> None:
    scripted.answers_with(of_size(40 * MOST), headers=CODED)
    scripted.answers_with(b" " * (MOST + 1), status=422, headers=PROBLEM)
    for _ in range(2):
        with pytest.raises(LimitExceededError) as refused:
            ask("validate", graph())
        assert refused.value.details["actual"] <= MOST + (1 << 20)


@pytest.mark.usefixtures("low")
def test_a_stream_that_is_refused_at_length_is_given_up(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with(told(), status=202)
    scripted.answers_with(of_size(MOST + 1), status=404, headers={**EVENTS, **CODED})
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(LimitExceededError):
        list(client.submit(graph()).events())


@pytest.mark.usefixtures("low")
def test_programs_for_several_targets_have_more_room(scripted: ScriptedServer, tmp_path: Path) -> None:
    # The job is read whole, which its programs are not.
    two = gzip.compress(told("done") + b" " * (MOST + 1), 1)
    scripted.answers_with(two, status=202, headers=CODED)
    with Client(scripted.url, cache_dir=tmp_path) as client:
        job = client.submit(graph(), ["cpu", "cpu:aarch64"])
        assert job.status().state == "done"
        with pytest.raises(LimitExceededError, match="fewer targets"):
            client.submit(graph(), "cpu")


def test_an_artifact_may_fill_a_bundle(scripted: ScriptedServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorkiln.bundle.MAX_ARTIFACT_BYTES", MOST * 2)
    scripted.answers_with(of_size(MOST * 2 + 1), headers=CODED)
    with pytest.raises(LimitExceededError, match=f"{MOST * 2}"):
        ask("artifact", "0" * 64)


def test_the_largest_answer_of_a_compile_fits() -> None:
    assert Settings().compile_output_mib << 20 <= MAX_ANSWER_BYTES

"""Bodies and requests made to do harm: each is refused by its own error, in each route that takes a graph."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import JSON, Server
from tests.service.test_connections import connected, said

ROUTES = ("/compile", "/explain", "/validate")
MARK = 987654321


def body(path: str, wire: dict[str, Any] | None = None) -> bytes:
    return encoded({"graph": wire or graph()} if path == "/validate" else compile_body(wire))


def with_value(path: str, text: bytes) -> bytes:
    wire = graph()
    wire["nodes"].append({"node": "const_scalar", "value": MARK, "dtype": "float32", "out_var": 9})
    return body(path, wire).replace(str(MARK).encode(), text)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("text", "status", "code", "pointer"),
    [
        (b"1.5", 200, "", None),
        (b"NaN", 400, "request.invalid", None),
        (b"-Infinity", 400, "request.invalid", None),
        (b"1e999", 422, "graph.invalid", "/nodes/3/value"),
        (b"1" + b"0" * 400, 422, "graph.invalid", "/nodes/3/value"),
        (b"1" + b"0" * 5000, 400, "request.invalid", None),
        (b"01", 400, "request.invalid", None),
        (b"0x10", 400, "request.invalid", None),
        (b'"\\ud800"', 400, "request.invalid", None),
        (b'"\xff"', 400, "request.invalid", None),
        (b'"\x00"', 400, "request.invalid", None),
        (b'1, "value": 2', 400, "request.invalid", "/graph/nodes/3/value"),
        (b"true", 422, "graph.invalid", "/nodes/3/value"),
        (b"null", 422, "graph.invalid", "/nodes/3/value"),
        (b"[" * 500 + b"]" * 500, 413, "limit.exceeded", None),
        (b'{"a":' * 500 + b"1" + b"}" * 500, 413, "limit.exceeded", None),
    ],
)
def test_a_strange_value_is_refused_where_it_stands(
    server: Server, path: str, text: bytes, status: int, code: str, pointer: str | None
) -> None:
    answer = server.post(path, with_value(path, text))
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == code
        assert pointer is None or answer.json()["pointers"] == [pointer]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_json_in_another_encoding_is_refused(server: Server, path: str, encoding: str) -> None:
    answer = server.post(path, body(path).decode().encode(encoding))
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json; version=1; charset=latin-1"},
        {**JSON, "Content-Encoding": "br"},
        {**JSON, "Content-Encoding": "identity, deflate"},
    ],
)
def test_a_body_declared_otherwise_is_not_read(server: Server, path: str, headers: dict[str, str]) -> None:
    content = gzip.compress(body(path)) if "Content-Encoding" in headers else body(path)
    answer = server.http.post(path, content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "request.invalid")
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ROUTES)
def test_a_body_in_chunks_without_a_length_is_taken(server: Server, path: str) -> None:
    content = body(path)

    def chunks() -> Iterator[bytes]:
        yield from (content[position : position + 7] for position in range(0, len(content), 7))

    assert server.http.post(path, content=chunks(), headers=JSON).status_code == 200


def raw(server: Server, request: bytes) -> bytes:
    """What the service sends back before it closes the connection or has answered once."""
    with connected(server) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return said(connection)


HEAD = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"Content-Length: -1\r\n\r\n{}", 400),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: gzip\r\n\r\n{}", 501),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400),
        (b"Content-Length: 2\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n{}", 431),
        (b"Content-Length: 100\r\n\r\n{}", 400),
    ],
)
def test_a_request_that_a_proxy_may_read_differently_is_refused(server: Server, rest: bytes, status: int) -> None:
    answer = b""
    with suppress(OSError):  # a reset instead of an answer is a refusal, too
        answer = raw(server, HEAD + rest)
    if answer:
        assert_problem(answer, status)
    assert server.http.get("/healthz").status_code == 200


@pytest.mark.parametrize("line", [b"\x16\x03\x01", b"GET", b"GET / HTTP/1.1 x", b"GET /\xff HTTP/1.1"])
def test_invalid_http_is_answered_with_a_problem(server: Server, line: bytes) -> None:
    assert_problem(raw(server, line + b"\r\nHost: localhost\r\n\r\n"), 400)


def test_invalid_http_after_a_head_request_is_answered_without_a_body(server: Server) -> None:
    answer = raw(server, HEAD.replace(b"POST", b"HEAD") + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert body == b""


def assert_problem(answer: bytes, status: int) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
    assert b"content-type: application/problem+json" in head
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("request.invalid", status)


def test_nothing_hostile_met_a_defect(server: Server) -> None:
    for line in server.log().splitlines():
        assert "defect" not in json.loads(line)["event"], line


def is_safe(headers: dict[str, str]) -> bool:
    policy = headers.get("content-security-policy", "")
    return (
        headers.get("x-content-type-options") == "nosniff"
        and headers.get("x-frame-options") == "DENY"
        and "default-src 'self'" in policy
        and "frame-ancestors 'none'" in policy
    )


def test_answers_are_safe_in_a_browser(server: Server) -> None:
    answer = server.compile(encoded(compile_body()))
    artifact = answer.json()["programs"][0]["kernels"][0]["artifact"]
    assert is_safe(dict(answer.headers))
    assert is_safe(dict(server.compile(b"{}").headers))
    paths = ("/healthz", "/docs", "/openapi.json", "/nowhere", "/programs/%zz", "/capabilities")
    for path in (*paths, f"/artifacts/{artifact}"):
        assert is_safe(dict(server.http.get(path).headers)), path


def test_answers_to_invalid_http_have_the_safe_headers(server: Server) -> None:
    head = raw(server, b"no http at all\r\n\r\n").partition(b"\r\n\r\n")[0]
    _, *lines = head.decode().lower().replace("deny", "DENY").split("\r\n")
    assert is_safe(dict(line.split(": ", 1) for line in lines))

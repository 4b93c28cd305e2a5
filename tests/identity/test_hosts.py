"""A service that asks for no credential answers to the names of its own machine only."""

from __future__ import annotations

import socket

import pytest

from tests.identity.guarded import GUARDED, UNGUARDED, Guarded, refusal
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server

BODY = encoded(compile_body())


@UNGUARDED
@pytest.mark.parametrize("auth", ["auto", "off"])
def test_a_page_whose_name_leads_to_this_machine_is_refused(
    unguarded: Server, switched_off: Guarded, auth: str
) -> None:
    server = {"auto": unguarded, "off": switched_off}[auth]
    for host in ("evil.example", "evil.example:80", "10.0.0.1", "[2001:db8::1]:80", "localhost.evil.example", ""):
        answer = server.post("/compile", BODY, Host=host)
        assert refusal(answer) == (421, "request.invalid"), host
        assert server.http.get("/capabilities", headers={"Host": host}).status_code == 200
    for host in ("localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.1.2.3", "[::1]:8080", "[::1]"):
        assert server.post("/compile", BODY, Host=host).status_code == 200, host


@GUARDED
def test_one_that_asks_for_a_credential_answers_to_any_name(guarded: Guarded) -> None:
    answer = guarded.send(guarded.key("acme"), "POST", "/compile", BODY, Host="kiln.example")
    assert answer.status_code == 200


TARGETS = [
    ("http://localhost:1/nothing", "localhost", b"404"),
    ("HTTP://127.0.0.1/nothing?x=1", "evil.example", b"404"),
    ("http://evil.example/nothing", "localhost", b"421"),
    ("http://evil.example/capabilities", "evil.example", b"200"),
    ("http://localhost/capab%69lities", "localhost", b"200"),
    ("http://localhost", "localhost", b"200"),
    ("http://localhost@evil.example/nothing", "localhost", b"421"),
    ("http://localhost:1@evil.example/nothing", "localhost", b"421"),
    ("http://[::1]evil/nothing", "localhost", b"421"),
    ("http:///nothing", "localhost", b"421"),
    ("*", "localhost", b"404"),
]


@UNGUARDED
def test_a_request_may_name_the_whole_url(unguarded: Server) -> None:
    address = "127.0.0.1", int(unguarded.url.rpartition(":")[2])
    for target, header, status in TARGETS:
        with socket.create_connection(address, timeout=20) as line:
            line.sendall(f"GET {target} HTTP/1.1\r\nHost: {header}\r\nConnection: close\r\n\r\n".encode())
            assert line.makefile("rb").readline().split()[1] == status, target

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


@UNGUARDED
@pytest.mark.parametrize("target", ["http://localhost:1/compile", "http://evil.example/capabilities", "*"])
def test_an_absolute_url_is_no_route(unguarded: Server, target: str) -> None:
    address = "127.0.0.1", int(unguarded.url.rpartition(":")[2])
    with socket.create_connection(address, timeout=20) as line:
        line.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert line.makefile("rb").readline().split()[1] == b"404"

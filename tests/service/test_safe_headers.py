"""A browser takes no answer for what it is not, and shows none in a frame of another page."""

from __future__ import annotations

from tests.service.bodies import compile_body, encoded
from tests.service.server import Server
from tests.service.test_connections import connected, said


def is_safe(headers: dict[str, str]) -> bool:
    """Whether the headers, by their names in small letters, say so."""
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
    with connected(server) as connection:
        connection.sendall(b"no http at all\r\n\r\n")
        head = said(connection).partition(b"\r\n\r\n")[0].decode().lower()
    assert is_safe(
        {
            name: value.replace("deny", "DENY")
            for name, _, value in (line.partition(": ") for line in head.split("\r\n"))
        }
    )

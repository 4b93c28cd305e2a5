"""GET and HEAD /artifacts/{sha256}."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest

from service.routes.artifacts import parse_range
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


@pytest.fixture(scope="module")
def artifact(server: Server) -> tuple[str, bytes]:
    answer = server.compile(encoded(compile_body(graph("exp2", rows=7))))
    digest = answer.json()["programs"][0]["kernels"][0]["artifact"]
    return digest, server.http.get(f"/artifacts/{digest}").content


def test_an_artifact_is_immutable_and_head_describes_it(server: Server, artifact: tuple[str, bytes]) -> None:
    digest, content = artifact
    assert sha256(content).hexdigest() == digest
    answer = server.http.get(f"/artifacts/{digest}")
    assert answer.headers["ETag"] == f'"{digest}"'
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    stated = answer.headers["Repr-Digest"].removeprefix("sha-256=:").removesuffix(":")
    assert b64decode(stated).hex() == digest
    head = server.http.head(f"/artifacts/{digest}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == str(len(content))
    assert head.headers["ETag"] == f'"{digest}"'
    missing = server.http.head(f"/artifacts/{'0' * 64}")
    assert (missing.status_code, missing.content) == (404, b"")


def test_a_range_is_sent_alone_and_one_outside_is_refused(server: Server, artifact: tuple[str, bytes]) -> None:
    digest, content = artifact
    size = len(content)
    for header, start, stop in (("bytes=1-9", 1, 10), (f"bytes=5-{size * 2}", 5, size)):
        answer = server.http.get(f"/artifacts/{digest}", headers={"Range": header})
        assert answer.status_code == 206
        assert answer.content == content[start:stop]
        assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{size}"
    answer = server.http.get(f"/artifacts/{digest}", headers={"Range": f"bytes={size}-"})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{size}"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "request.invalid"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        *((ignored, None) for ignored in (None, "", "bytes=", "items=0-1", "bytes=3-1", "bytes=0-1,3-4", "bytes=-")),
        ("bytes=1.5-2", None),
        ("bytes=0-", range(10)),
        ("bytes=0-0", range(1)),
        ("bytes=9-9", range(9, 10)),
        ("bytes=5-20", range(5, 10)),
        (" bytes=2-3 ", range(2, 4)),
        ("bytes=-3", range(7, 10)),
        ("bytes=-30", range(10)),
        ("bytes=10-", range(0)),
        ("bytes=12-15", range(0)),
        ("bytes=-0", range(0)),
    ],
)
def test_a_range_header_is_read_as_the_rfc_says(header: str | None, expected: range | None) -> None:
    assert parse_range(header, 10) == expected

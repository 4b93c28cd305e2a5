"""GET and HEAD /artifacts/{sha256}, and GET /programs/{digest}/report."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest

from service.routes.programs import parse_range
from tensorkiln.report.page import content_security_policy
from tests.report.test_report import data_of
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_hostile import is_safe


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


@pytest.fixture(scope="module")
def programs(server: Server) -> tuple[str, str]:
    """A program for a CPU with the texts of its stages, and one for a GPU without."""
    body = compile_body(graph("exp2", name="mine", symbol="batch"), dump_stages=True)
    (first,) = server.compile(encoded(body)).json()["programs"]
    (second,) = server.compile(encoded({**compile_body(graph("exp2")), "target": "cuda:sm_90"})).json()["programs"]
    return first["digest"], second["digest"]


def test_a_stored_program_is_a_page(server: Server, programs: tuple[str, str]) -> None:
    digest, _ = programs
    answer = server.http.get(f"/programs/{digest}/report")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    data = data_of(answer.text)
    assert data["this", "program"] == server.http.get(f"/programs/{digest}").json()
    assert data["this", "signature"] == server.http.get(f"/programs/{digest}/signature").json()
    assert data["this", "stage:translate"] == server.http.get(f"/programs/{digest}/stages/translate").text
    assert data["this", "seconds"]["translate"] > 0
    assert {side for side, _ in data} == {"this"}


def test_another_program_stands_beside_it(server: Server, programs: tuple[str, str]) -> None:
    digest, other = programs
    data = data_of(server.http.get(f"/programs/{digest}/report", params={"against": other}).text)
    assert data["against", "program"]["digest"] == other
    assert ".visible .entry" in data["against", "stage:ptx"]


def test_a_browser_may_run_nothing_but_the_page(server: Server, programs: tuple[str, str]) -> None:
    answer = server.http.get(f"/programs/{programs[0]}/report")
    assert is_safe(dict(answer.headers))
    # A browser obeys each of the policies.
    (own,) = (each for each in answer.headers.get_list("Content-Security-Policy") if "sandbox" in each)
    assert own == f"{content_security_policy()}; sandbox allow-scripts"
    assert "'none'" in own
    assert "unsafe-inline" not in own


def test_a_page_is_sent_again_when_it_has_changed(server: Server, programs: tuple[str, str]) -> None:
    path = f"/programs/{programs[0]}/report"
    etag = server.http.get(path).headers["ETag"]
    assert server.http.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert server.http.get(path, params={"against": programs[1]}).headers["ETag"] != etag


def test_programs_that_are_not_there_are_said_to_be_missing(server: Server, programs: tuple[str, str]) -> None:
    missing = "0" * 64
    assert server.http.get(f"/programs/{missing}/report").json()["code"] == "request.not_found"
    compared = server.http.get(f"/programs/{programs[0]}/report", params={"against": missing})
    assert (compared.status_code, compared.json()["code"]) == (404, "request.not_found")
    assert server.http.get(f"/programs/{programs[0]}/report", params={"against": "<x>"}).status_code == 422

"""Answers in zstd: for those who take it, as a representation of its own."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

import httpx2
import pytest

from service.coding.encode import MIN_BYTES
from service.coding.negotiate import takes_zstd
from service.coding.zstandard import zstd
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import JSON, Server


@pytest.mark.parametrize(
    ("headers", "takes"),
    [
        ([], False),
        ([""], False),
        (["zstd"], True),
        (["ZSTD"], True),
        (["gzip, deflate, zstd"], True),
        (["gzip", "zstd"], True),
        (["*"], True),
        (["zstd;q=0"], False),
        (["zstd;q=0.001"], True),
        (["*;q=0.5, zstd;q=0"], False),
        (["zstd;q=0.5, identity"], False),
        (["zstd;q=0.5, identity;q=0.5"], True),
        (["zstd ; q=1.000"], True),
        (["zstd;q=2"], False),
        (["gzip;q=1, identity;q=0"], False),
        (["xzstd"], False),
        (["," * 5000 + "zstd"], False),
    ],
)
def test_what_a_client_takes_is_what_it_says(headers: list[str], takes: bool) -> None:
    assert takes_zstd(headers) is takes


def fetch(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[httpx2.Response, bytes]:
    """An answer and its bytes as they were sent."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with server.http.stream(method, path, headers={"Accept-Encoding": "identity", **named}) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.fixture(scope="module")
def program(server: Server) -> dict[str, Any]:
    body = encoded(compile_body(graph("exp2", rows=41), dump_stages=True))
    answer = server.http.post("/compile", content=body, headers=JSON)
    (only,) = answer.json()["programs"]
    return only


def test_an_artifact_has_two_representations_with_an_etag_each(server: Server, program: dict[str, Any]) -> None:
    digest = program["kernels"][0]["artifact"]
    path = f"/artifacts/{digest}"
    plain, content = fetch(server, path)
    coded, sent = fetch(server, path, Accept_Encoding="zstd")
    assert "content-encoding" not in plain.headers
    assert coded.headers["Content-Encoding"] == "zstd"
    assert zstd.decompress(sent) == content
    assert sha256(content).hexdigest() == digest
    assert len(sent) == int(coded.headers["Content-Length"]) < len(content)
    assert [each.headers["Vary"] for each in (plain, coded)] == ["Accept-Encoding"] * 2
    assert [each.headers["ETag"] for each in (plain, coded)] == [f'"{digest}"', f'"{digest}-zstd"']
    assert plain.headers["Accept-Ranges"] == "bytes"
    assert "Accept-Ranges" not in coded.headers
    digests = [f"sha-256=:{b64encode(sha256(each).digest()).decode()}:" for each in (content, sent)]
    assert [each.headers["Repr-Digest"] for each in (plain, coded)] == digests
    head, nothing = fetch(server, path, "HEAD", Accept_Encoding="zstd")
    assert (nothing, head.headers["ETag"]) == (b"", coded.headers["ETag"])
    assert head.headers["Content-Length"] == coded.headers["Content-Length"]


def test_a_copy_of_either_representation_is_current(server: Server, program: dict[str, Any]) -> None:
    digest = program["kernels"][0]["artifact"]
    for etag in (f'"{digest}"', f'"{digest}-zstd"', f'W/"{digest}-zstd"', f'"x", "{digest}-zstd"'):
        answer, content = fetch(server, f"/artifacts/{digest}", Accept_Encoding="zstd", If_None_Match=etag)
        assert (answer.status_code, content) == (304, b"")
        assert answer.headers["ETag"] == (f'"{digest}-zstd"' if "zstd" in etag else f'"{digest}"')
        assert answer.headers["Vary"] == "Accept-Encoding"
        # What is said of the plain bytes would be believed of the coded copy.
        assert ("Repr-Digest" in answer.headers) == ("Accept-Ranges" in answer.headers) == ("zstd" not in etag)
    assert 'route="none",status="304"' not in server.http.get("/metrics").text
    other, _ = fetch(server, f"/artifacts/{digest}", If_None_Match=f'"{"0" * 64}-zstd"')
    assert other.status_code == 200


def test_etags_on_several_lines_are_one_list(server: Server, program: dict[str, Any]) -> None:
    digest = program["kernels"][0]["artifact"]
    path = f"/artifacts/{digest}"
    for etag in (digest, f"{digest}-zstd"):
        known = server.http.get(path, headers=[("If-None-Match", '"x"'), ("If-None-Match", f'"{etag}"')])
        assert known.status_code == 304
        needed = server.http.get(path, headers=[("If-Match", '"x"'), ("If-Match", f'"{etag}"')])
        assert needed.status_code == 200
    refused = server.http.get(path, headers=[("If-Match", '"x"'), ("If-Match", '"y"')])
    assert refused.status_code == 412


def test_ranges_are_of_the_plain_bytes_alone(server: Server, program: dict[str, Any]) -> None:
    path = f"/artifacts/{program['kernels'][0]['artifact']}"
    plain, content = fetch(server, path)
    part, sent = fetch(server, path, Accept_Encoding="zstd", Range="bytes=10-99")
    assert (part.status_code, sent) == (206, content[10:100])
    assert "Content-Encoding" not in part.headers
    assert part.headers["ETag"] == plain.headers["ETag"]
    marked = plain.headers["ETag"][:-1] + '-zstd"'
    whole, sent = fetch(server, path, Accept_Encoding="zstd", Range="bytes=10-99", If_Range=marked)
    assert (whole.status_code, sent) == (200, content), "what was begun coded cannot be gone on with plain"


def test_programs_dumps_and_answers_are_coded_and_errors_and_small_ones_are_not(
    server: Server, program: dict[str, Any]
) -> None:
    for path in (f"/programs/{program['digest']}", f"/programs/{program['digest']}/stages/from-graph", "/openapi.json"):
        plain, content = fetch(server, path)
        coded, sent = fetch(server, path, Accept_Encoding="gzip, zstd")
        assert len(content) < MIN_BYTES or zstd.decompress(sent) == content, path
        assert coded.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    for path, status in (("/healthz", 200), ("/artifacts/x", 422), (f"/artifacts/{'0' * 64}", 404)):
        answer, _ = fetch(server, path, Accept_Encoding="zstd")
        assert answer.status_code == status
        assert "Content-Encoding" not in answer.headers


def test_the_answer_of_a_compile_is_coded_and_reads_the_same(server: Server) -> None:
    body = encoded(compile_body(graph("exp2", rows=42)))
    server.compile(body)
    plain = server.http.post("/compile", content=body, headers={**JSON, "Accept-Encoding": "identity"})
    coded = server.http.post("/compile", content=body, headers={**JSON, "Accept-Encoding": "zstd"})
    assert coded.headers["Content-Encoding"] == "zstd"
    assert coded.content == plain.content, "the client decodes it"


def test_events_are_sent_as_they_happen_and_not_coded(server: Server) -> None:
    body = encoded(compile_body(graph("exp2", rows=43)))
    job = server.http.post("/compile", content=body, headers={**JSON, "Prefer": "wait=30"}).json()["id"]
    answer, sent = fetch(server, f"/jobs/{job}/events", Accept_Encoding="zstd")
    assert "Content-Encoding" not in answer.headers
    assert b"event: done" in sent

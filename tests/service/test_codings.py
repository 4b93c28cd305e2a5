"""Bodies in zstd and gzip: what is within the bounds is read, what swells beyond them is not made."""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http.coded_bodies import (
    FREE_BYTES,
    MAX_FRAMES,
    MAX_RATIO,
    MAX_WINDOW_BYTES,
    CodingError,
    coding_of,
    decoded,
    zstd,
)
from tensorkiln.errors import LimitExceededError, RequestError
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing
from tests.service.server import Server, cache

LIMIT = 4 << 20
CODERS: dict[str, Callable[[bytes], bytes]] = {"zstd": zstd.compress, "gzip": partial(gzip.compress, mtime=0)}
NOISE = Random(0).randbytes(3 << 20)


def streamed(content: bytes, window_log: int = 0) -> bytes:
    """zstd that does not state the size of its content; 0 is the window of its level."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: window_log}
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(content) + compressor.flush()


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    **{coding: (coding, code) for coding, code in CODERS.items()},
    "streamed": ("zstd", streamed),
}


def read(content: bytes, coding: str, chunk: int = 1 << 14) -> bytes:
    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(content), chunk):
            yield content[begin : begin + chunk]

    async def whole() -> bytes:
        return b"".join([piece async for piece in decoded(chunks(), coding, LIMIT)])

    return asyncio.run(whole())


def refused(content: bytes, coding: str) -> dict[str, int]:
    with pytest.raises(LimitExceededError) as caught:
        read(content, coding)
    return caught.value.details


@pytest.mark.parametrize("coder", ENCODERS)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 14])
@pytest.mark.parametrize("content", [b"", b"a", b"abc" * 1000, NOISE[:5000]], ids=["empty", "one", "alike", "noise"])
def test_codings_round_trip(coder: str, chunk: int, content: bytes) -> None:
    coding, code = ENCODERS[coder]
    assert read(code(content), coding, chunk=chunk) == content


@pytest.mark.parametrize("coding", CODERS)
def test_large_content_and_several_frames_come_back(coding: str) -> None:
    code = CODERS[coding]
    assert read(code(NOISE), coding) == NOISE
    frames = b"".join(code(NOISE[begin : begin + 100_000]) for begin in range(0, 1_000_000, 100_000))
    assert read(frames, coding) == NOISE[:1_000_000]


def test_a_skippable_frame_is_skipped() -> None:
    assert read(b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd.compress(b"content"), "zstd") == b"content"


@pytest.mark.parametrize("coding", CODERS)
def test_bodies_not_in_their_coding_are_refused(coding: str) -> None:
    coded = CODERS[coding](b"content" * 100)
    for broken in (b"", b"{}", b"\x00" * 100, coded[:-1], coded[:10], coded[:3], coded + b"more bytes than a header"):
        with pytest.raises(RequestError):
            read(broken, coding)


@given(st.sampled_from([*CODERS]), st.binary(min_size=1, max_size=40), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_damaged_bytes_are_read_or_refused(coding: str, damage: bytes, place: int) -> None:
    coded = bytearray(CODERS[coding](b"some content, " * 40))
    begin = place % len(coded)
    coded[begin : begin + len(damage)] = damage
    with suppress(RequestError, LimitExceededError):
        read(bytes(coded), coding)


@pytest.mark.parametrize("coder", ENCODERS)
def test_decompression_bombs_are_stopped_early(coder: str) -> None:
    coding, code = ENCODERS[coder]
    details = refused(code(bytes(64 << 20)), coding)
    assert (details["limit"], details["maximum"]) == ("body_ratio", MAX_RATIO)
    assert read(code(bytes(FREE_BYTES)), coding) == bytes(FREE_BYTES)


def test_long_bodies_are_refused_whatever_length_they_state() -> None:
    dense = os.urandom(1 << 16) * (LIMIT // (1 << 16)) + b"x"
    details = refused(streamed(dense + NOISE[: 1 << 20]), "zstd")
    assert details["limit"] in ("body_bytes", "body_ratio")
    details = refused(gzip.compress(NOISE + NOISE[: 1 << 20] + b"x"), "gzip")
    assert (details["limit"], details["maximum"]) == ("body_bytes", LIMIT)


def test_a_wide_window_is_refused() -> None:
    for log in (24, 27):
        details = refused(streamed(b"abc" * 1000, log), "zstd")
        assert details == {"limit": "body_window_bytes", "maximum": MAX_WINDOW_BYTES, "actual": MAX_WINDOW_BYTES + 1}
    assert read(streamed(b"abc" * 1000, 23), "zstd") == b"abc" * 1000


@pytest.mark.parametrize("coding", CODERS)
def test_empty_frames_without_end_are_refused(coding: str) -> None:
    empty = CODERS[coding](b"")
    assert read(empty * MAX_FRAMES, coding) == b""
    details = refused(empty * (MAX_FRAMES + 1), coding)
    assert details == {"limit": "body_frames", "maximum": MAX_FRAMES, "actual": MAX_FRAMES + 1}


def test_empty_blocks_without_end_are_refused() -> None:
    head = b"\x28\xb5\x2f\xfd\x00\x58"
    assert refused(head + b"\x00\x00\x00" * (LIMIT // 3 + 10), "zstd")["limit"] == "body_bytes"


@pytest.mark.parametrize("header", ["br", "deflate", "compress", "gzip, br", "gzip, zstd", "x", "\x00", "a" * 9000])
def test_an_unknown_coding_is_named(header: str) -> None:
    with pytest.raises(CodingError, match="zstd, gzip"):
        coding_of(header)


def test_codings_are_named_in_any_case_and_identity_is_none() -> None:
    assert coding_of("") is coding_of("identity") is coding_of(" Identity ,") is None
    assert [coding_of(each) for each in ("ZSTD", "X-GZIP", "identity, gzip")] == ["zstd", "x-gzip", "gzip"]


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("path", ["/compile", "/validate", "/explain"])
def test_every_route_with_a_body_takes_it_coded(server: Server, path: str, coding: str) -> None:
    wire = compile_body(graph("exp2", rows=21))
    body = encoded(wire if path != "/validate" else {"graph": wire["graph"]})
    plain = server.post(path, body)
    coded = server.post(path, CODERS[coding](body), Content_Encoding=coding)
    assert (plain.status_code, coded.status_code) == (200, 200), coded.text
    if path == "/compile":
        assert cache(coded) == ("hit", "same request"), "the same bytes once they are decoded"


def test_an_unknown_coding_is_answered_with_those_that_are_known(server: Server) -> None:
    answer = server.post("/validate", zlib.compress(b"{}"), Content_Encoding="deflate")
    assert (answer.status_code, answer.json()["code"]) == (415, "request.invalid")
    assert answer.headers["Accept-Encoding"] == "zstd, gzip"
    stated = server.http.get("/capabilities").json()
    assert stated["content_codings"] == ["zstd", "gzip"]
    assert stated["limits"]["body_ratio"] == MAX_RATIO


def test_a_crash_while_a_coded_body_is_read_leaves_it_plain_in_a_reproducer(server: Server) -> None:
    body = failing(encoded(compile_body(graph("exp2", rows=22))), "prepare:segfault")
    problem = server.post("/compile", zstd.compress(body), Content_Encoding="zstd").json()
    assert (problem["code"], problem["details"]["signal"]) == ("compile.crashed", "SIGSEGV")
    assert problem["details"]["reproducer"] == sha256(body).hexdigest()
    assert server.http.get(f"/artifacts/{sha256(body).hexdigest()}").content == body
    assert server.compile(encoded(compile_body())).status_code == 200

"""The frames between a job and the service, and the datagrams between the service and its fork server."""

from __future__ import annotations

import asyncio
import socket

import pytest

from service.sandbox import control, frames
from service.sandbox.control import Cancel, Ended, Fork, Limits, Ready, Refused, Unready
from service.sandbox.frames import FrameError, Message
from service.sandbox.reply import Reply, TooMuchOutput
from tensorkiln.errors import InvalidGraphError


def read(content: bytes, max_bytes: int = 1 << 20) -> object:
    async def run() -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        return await Reply(max_bytes, lambda _: None).read(reader)

    return asyncio.run(run())


MESSAGE = Message({"a": [1, "ü"]}, {"graph": b"\x00\xff", "ü": b""})


def test_a_message_reads_as_it_was_written_on_both_sides() -> None:
    written = b"".join(frames.encode_message(MESSAGE))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(written)
        assert frames.receive_message(ours) == MESSAGE
    assert read(written) == MESSAGE


def test_a_message_that_breaks_off_is_no_message() -> None:
    written = b"".join(frames.encode_message(MESSAGE))
    for end in range(len(written)):
        assert read(written[:end]) is None
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(written[:-1])
        with pytest.raises(FrameError, match="closed the connection"):
            frames.receive_message(ours)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 16,
        frames.encode(frames.DONE, b"not json"),
        frames.encode(frames.DONE, b"[]"),
        frames.encode(frames.PART, b"\x00"),
        frames.encode(frames.PART, b"\x00\x09ab"),
        frames.encode(frames.STAGE, b"\xff"),
    ],
)
def test_garbage_is_told_from_a_message(content: bytes) -> None:
    with pytest.raises(FrameError):
        read(content)


def test_an_answer_longer_than_allowed_is_not_read_to_its_end() -> None:
    with pytest.raises(TooMuchOutput):
        read(frames.PREFIX.pack(frames.PART, 1 << 30), max_bytes=100)


def test_a_typed_error_arrives_as_such() -> None:
    error = InvalidGraphError("no", pointers=["/nodes/1"], details={"a": 1})
    received = read(frames.encode_json(frames.FAILED, error.to_problem()))
    assert isinstance(received, InvalidGraphError)
    assert received.to_problem() == error.to_problem()


@pytest.mark.parametrize(
    "message",
    [
        Fork(3, "compile", Limits(1.5, 64, 4)),
        Cancel(3),
        Ready(430, ("fork", "rlimits")),
        Unready("its warm-up failed"),
        Refused(3, "no memory"),
        Ended(3, 139, False, 60, 20, 0.25, "last words"),
    ],
)
def test_a_datagram_reads_as_it_was_written(message: control.Order | control.Report) -> None:
    assert control.decode(control.encode(message)) == message


def test_the_longest_report_fits_into_a_datagram() -> None:
    longest = Ended(1 << 31, 139, True, 1 << 20, 1 << 20, 1e6, "\x01" * control.STDERR_TAIL)
    assert len(control.encode(longest)) <= control.MAX_DATAGRAM

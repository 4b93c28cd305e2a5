"""Garbage is collected in a job by what kind it is."""

from __future__ import annotations

import gc
import socket

import pytest

from service.sandbox import child, confine, frames
from service.sandbox.child import Outlet
from service.sandbox.control import Limits
from service.sandbox.frames import Message

LIMITS = Limits(deadline_s=5.0, memory_mib=64, file_mib=4)


def test_a_compile_collects_garbage_and_what_reads_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "call_process", lambda _: None)

    def job(request: Message, outlet: Outlet) -> Message:
        del request, outlet
        return Message({"collects": gc.isenabled()})

    def collects(kind: str) -> bool:
        gc.enable()  # as in a process that has done nothing yet
        mine, theirs = socket.socketpair()
        with mine, theirs:
            mine.sendall(b"".join(frames.encode_message(Message())))
            child._work(kind, job, theirs, Outlet(theirs))  # pyright: ignore[reportPrivateUsage]
            return bool(frames.receive_message(mine).header["collects"])

    try:
        assert [collects(kind) for kind in ("prepare", "compile", "render", "tune")] == [False, True, False, True]
    finally:
        gc.enable()

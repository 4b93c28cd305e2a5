"""Warm-ups for fork servers of the tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

from service.sandbox.child import Job, Outlet
from service.sandbox.frames import Message
from service.sandbox.jobs import JOBS
from service.sandbox.jobs.compile_action import compile_action
from tensorkiln.errors import DiagnosticError

HELD_MIB = 96
_held: list[bytes] = []


def refuse() -> None:
    raise DiagnosticError("no such pass")


def leave_a_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def grow() -> None:
    """Hold HELD_MIB of memory that is resident."""
    _held.append(b"x" * (HELD_MIB << 20))


LIES: dict[str, Callable[[dict[str, Any], dict[str, bytes]], object]] = {
    "no_artifacts": lambda header, parts: header.pop("artifacts"),
    "no_stages": lambda header, parts: header.pop("stages"),
    "artifacts_of_numbers": lambda header, parts: header.update(artifacts=[1, 2]),
    "artifacts_of_paths": lambda header, parts: header.update(artifacts=["../../keys"]),
    "one_artifact": lambda header, parts: header.update(artifacts="0" * 64),
    "a_list_of_stages": lambda header, parts: header.update(stages=["parse"]),
    "unknown_bytes": lambda header, parts: header.update(artifacts=["0" * 64]),
    "no_program": lambda header, parts: parts.pop("program"),
    "no_answer": lambda header, parts: parts.pop("answer"),
}
"""What a compile under foreign control may say of itself, by the name of the hook that makes it."""


def lie() -> None:
    """Have compiles with a hook of LIES answer so."""

    def lying(request: Message, outlet: Outlet) -> Message:
        header = dict(request.header)
        tell = LIES[header.pop("hook")]
        answer = compile_action(Message(header, request.parts), outlet)
        said, parts = dict(answer.header), dict(answer.parts)
        tell(said, parts)
        return Message(said, parts)

    cast(dict[str, Job], JOBS)["compile"] = lying

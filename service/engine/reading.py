"""How the body of a request gets into the sandbox, and into which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.wire.body import Body
from tensorkiln.compiler_build import build

_MODULE: Final = b'"stablehlo"'
"""What a body holds that has a module in the place of a graph."""


def reading(body: Body, header: Mapping[str, str] | None = None) -> Message:
    """The request of a job that reads a body."""
    return Message(header or {}, {"body": body.content})


def of_actions(salt: str) -> dict[str, str]:
    """What a job is told that names actions."""
    return {"build_id": build().build_id, "salt": salt}


def where_to_read(body: Body, reader: Sandbox, compiler: Sandbox | None) -> Sandbox:
    """Where a body is read: a module of StableHLO where the compiler is loaded, and with it what reads those.

    It is a guess by the bytes. A wrong one costs time alone: each of the two can read every body.
    """
    return compiler if compiler is not None and _MODULE in body.content else reader

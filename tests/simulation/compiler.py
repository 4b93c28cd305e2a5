"""A simulated compiler: takes simulated time, and ends as the graph specifies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from service.sandbox.connection import Spending
from service.sandbox.control import Limits, Ready
from service.sandbox.frames import Message
from tensorkiln.errors import CrashedError, DiagnosticError

from .process import Process

Kind: TypeAlias = Literal["good", "refused", "poison", "deadly"]
"""The outcome of a graph: success, an error, a crash of the compile (`poison`), or of its worker (`deadly`)."""

_CANARY: Final = b"canary"
_CANARY_DIGEST: Final = sha256(_CANARY).hexdigest()
_MOST_S: Final = 2.0


def graph(kind: Kind, number: int) -> bytes:
    """A graph with this outcome; the number distinguishes graphs."""
    return json.dumps({"schema": 1, "kind": kind, "number": number}).encode()


class Compiler:
    """The part of `Sandbox` that a worker uses. `ended` is called at the end of every compile, with digest and kind.

    No two compiles return the same bytes, so that mixed-up programs are detected.
    """

    def __init__(self, process: Process, level: str, ended: Callable[[str, Kind], None]) -> None:
        self._process = process
        self._level = level
        self._ended = ended
        self._number = 0

    async def start(self) -> Ready:
        return Ready(1, (), self._level)

    async def close(self) -> None:
        """Nothing to close, since there is no process."""

    async def run(
        self,
        kind: str,
        message: Message,
        limits: Limits,
        on_stage: Callable[[str], None] = lambda _: None,
        *,
        spending: Spending | None = None,
    ) -> Message:
        said: dict[str, Any] = {"artifacts": [], "stages": {}, "seconds": {}}
        if kind == "trial":
            return Message({**said, "artifacts": [_CANARY_DIGEST]}, {f"artifact:{_CANARY_DIGEST}": _CANARY})
        on_stage("lower")
        await asyncio.sleep(self._process.chance.random() * _MOST_S)
        asked: Kind = json.loads(message.parts["graph"])["kind"]
        self._ended(message.header["digest"], asked)
        if asked == "deadly":
            self._process.kill()
            await asyncio.sleep(0)
        if asked == "poison":
            raise CrashedError("The compile crashed.", details={"stage": "lower"})
        if asked == "refused":
            raise DiagnosticError("The graph is refused.")
        self._number += 1
        made = {"digest": message.header["digest"], "build": self._process.build, "by": self._process.name}
        return Message(said, {"program": json.dumps({**made, "number": self._number}).encode()})

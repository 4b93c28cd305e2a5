"""One action to its stored program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from service.action import Action
from service.build_id import build
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.blobs import Blobs
from service.store.programs import Entry, Miss, Programs
from tensorkiln.errors import CrashedError, TensorkilnError, UnavailableError

from .flights import Flights
from .lane import Lane
from .reproducer import compile_reproducer, needs_reproducer, with_reproducer

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program in canonical names, as JSON; what must be there for it to be of use; and whether it was there."""

    program: bytes
    blobs: tuple[str, ...]
    cache: Mapping[str, Any]


class Compiles:
    """Finds programs in the store and compiles those that are not there, each once however many ask for it."""

    def __init__(self, sandbox: Sandbox, lane: Lane, limits: Limits, blobs: Blobs, programs: Programs) -> None:
        self._sandbox = sandbox
        self._lane = lane
        self._limits = limits
        self._blobs = blobs
        self._programs = programs
        self._flights: Flights[Compiled] = Flights()
        self.started = 0

    async def program(self, action: Action, graph: bytes, *, with_dumps: bool, hook: str | None) -> Compiled:
        """The program of `action`, whose canonical graph is `graph`. A CompileError of its own when there is none.

        `hook` names a test hook; such a compile is neither looked up nor kept.
        """
        if hook is not None:
            return await self._compile(action, graph, with_dumps, "test hook", hook)
        key = (action.digest, with_dumps)
        return await self._flights.join(key, lambda: self._find_or_compile(action, graph, with_dumps))

    async def close(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    async def _find_or_compile(self, action: Action, graph: bytes, with_dumps: bool) -> Compiled:
        found = await self._programs.find(action, with_dumps=with_dumps)
        if isinstance(found, Miss):
            return await self._compile(action, graph, with_dumps, found.reason, None)
        program = await self._blobs.get(found.program)
        if program is None:
            return await self._compile(action, graph, with_dumps, "the stored program was damaged", None)
        return Compiled(program, found.blobs, {"status": "hit", "reason": "same action"})

    async def _compile(self, action: Action, graph: bytes, with_dumps: bool, reason: str, hook: str | None) -> Compiled:
        header = {
            "digest": action.digest,
            "target": action.target,
            "options": {**action.options, "dump_stages": with_dumps},
            "provenance": {"build_id": action.build_id, "versions": build().versions, "isolation": "process"},
            **({"hook": hook} if hook is not None else {}),
        }
        self.started += 1
        try:
            async with self._lane:
                answer = await self._sandbox.run("compile", Message(header, {"graph": graph}), self._limits)
        except TensorkilnError as error:
            _log.warning("a compile failed", code=error.code, digest=action.digest, stage=error.details.get("stage"))
            if not needs_reproducer(error):
                raise
            raise await with_reproducer(error, compile_reproducer(graph, action), self._blobs) from None
        entry = await self._store(answer)
        if hook is None:
            await self._programs.save(action, entry)
        return Compiled(answer.parts["program"], entry.blobs, {"status": "miss", "reason": reason})

    async def _store(self, answer: Message) -> Entry:
        """Keep the bytes of a compile, whose own word about their digests is not taken."""
        for name, content in answer.parts.items():
            kind, _, label = name.partition(":")
            stated = {"artifact": label, "dump": answer.header["stages"].get(label)}.get(kind)
            if stated is not None and await self._blobs.put(content) != stated:
                raise CrashedError(
                    "The compile named a digest that its bytes do not have.", details={"stage": "return"}
                )
        entry = Entry(
            await self._blobs.put(answer.parts["program"]),
            tuple(answer.header["artifacts"]),
            answer.header["stages"],
        )
        if not await self._blobs.holds(entry.blobs):
            raise UnavailableError("The store lost what was written to it; send the request again.")
        return entry

"""One action to its stored program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from service.action import Action
from service.build_id import build
from service.fairness.turns import Turns
from service.identity.tenancy import Tenancy
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.blobs import Blobs
from service.store.programs import Entry, Miss, Programs
from tensorkiln.errors import CrashedError, TensorkilnError, UnavailableError

from .flights import Flights
from .reproducer import compile_reproducer, needs_reproducer, with_reproducer
from .stated import Stated

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request wants compiled: an action and its canonical graph, with or without the dumps of its stages.

    `hook` names a test hook. `renaming` is that of a request which wants nothing else.
    """

    action: Action
    graph: bytes
    with_dumps: bool
    hook: str | None = None
    renaming: bytes | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The answer to a request with this renaming, and what the same request gets the next time."""

    renaming: bytes
    answer: bytes
    repeat: bytes


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program in canonical names, as JSON; what must be there for it to be of use; and whether it was there.

    `rendered` is there when the program was made for one request alone. `signature` is the signed record as JSON, empty
    for one that is not kept.
    """

    program: bytes
    blobs: tuple[str, ...]
    cache: Mapping[str, Any]
    rendered: Rendered | None = None
    signature: str = ""


class Compiles:
    """Finds programs in the store and compiles those that are not there, each once however many ask for it."""

    def __init__(
        self, sandbox: Sandbox, turns: Turns, tenancy: Tenancy, limits: Limits, blobs: Blobs, programs: Programs
    ) -> None:
        self._sandbox = sandbox
        self._turns = turns
        self._tenancy = tenancy
        self._limits = limits
        self._blobs = blobs
        self._programs = programs
        self._flights: Flights[Compiled, str] = Flights()
        self.started = 0

    async def program(self, wanted: Wanted, tell: Callable[[str], None] = lambda _: None) -> Compiled:
        """The program that is wanted. A CompileError of its own when there is none. `tell` gets the names of stages.

        With a hook it is neither looked up nor kept.
        """
        if wanted.hook is not None:
            return await self._compile(wanted, "test hook", tell)
        key = (wanted.action.digest, wanted.with_dumps, self._tenancy.equals)
        return await self._flights.join(key, lambda tell: self._find_or_compile(wanted, tell), tell)

    async def close(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    async def _find_or_compile(self, wanted: Wanted, tell: Callable[[str], None]) -> Compiled:
        if not self._tenancy.reads_store:
            return await self._compile(wanted, "the caller does not read the store", tell)
        found = await self._programs.find(wanted.action, with_dumps=wanted.with_dumps)
        if isinstance(found, Miss):
            return await self._compile(wanted, found.reason, tell)
        program = await self._blobs.get(found.program)
        if program is None:
            return await self._compile(wanted, "the stored program was damaged", tell)
        return Compiled(program, found.blobs, {"status": "hit", "reason": "same action"}, None, found.signature)

    async def _compile(self, wanted: Wanted, reason: str, tell: Callable[[str], None]) -> Compiled:
        self._tenancy.require_compile()
        cache = {"status": "miss", "reason": reason}
        self.started += 1
        try:
            async with self._turns.turn(len(wanted.graph)):
                answer = await self._sandbox.run("compile", _request(wanted, cache), self._limits, tell)
        except TensorkilnError as error:
            digest, stage = wanted.action.digest, error.details.get("stage")
            _log.warning("a compile failed", code=error.code, digest=digest, stage=stage)
            if not needs_reproducer(error):
                raise
            reproducer = compile_reproducer(wanted.graph, wanted.action)
            raise await with_reproducer(error, reproducer, self._blobs) from None
        entry = await self._store(answer, [] if wanted.renaming is None else ["answer", "repeat"])
        if wanted.hook is None:
            entry = await self._programs.save(wanted.action, entry)
        parts = answer.parts
        rendered = Rendered(wanted.renaming, parts["answer"], parts["repeat"]) if wanted.renaming is not None else None
        return Compiled(parts["program"], entry.blobs, cache, rendered, entry.signature)

    async def _store(self, answer: Message, besides: Collection[str]) -> Entry:
        """Keep the bytes of a compile, whose own word about their digests is not taken; `besides` must be there too."""
        made = Stated.of(answer.header)
        stated = {f"artifact:{digest}": digest for digest in made.artifacts}
        stated |= {f"dump:{stage}": digest for stage, digest in made.stages.items()}
        parts = answer.parts
        if not parts.keys() >= {"program", *stated, *besides}:
            raise CrashedError("The compile named bytes that it does not give.", details={"stage": "return"})
        program, *digests = await asyncio.gather(*(self._blobs.put(parts[name]) for name in ("program", *stated)))
        if digests != list(stated.values()):
            raise CrashedError("The compile named a digest that its bytes do not have.", details={"stage": "return"})
        entry = Entry(program, made.artifacts, made.stages)
        if not await self._blobs.holds(entry.blobs):
            raise UnavailableError("The store lost what was written to it; send the request again.")
        return entry


def _request(wanted: Wanted, cache: Mapping[str, Any]) -> Message:
    action = wanted.action
    header = {
        "digest": action.digest,
        "target": action.target,
        "options": {**action.options, "dump_stages": wanted.with_dumps},
        "provenance": {"build_id": action.build_id, "versions": build().versions},
        "cache": cache,
        **({"hook": wanted.hook} if wanted.hook is not None else {}),
    }
    parts = {"graph": wanted.graph}
    return Message(header, parts if wanted.renaming is None else {**parts, "renaming": wanted.renaming})

"""The engine that needs no other server: compiles in processes that this one's fork server forks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from secrets import token_hex
from typing import Any

import structlog

from service.build_id import build
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.blobs import Blobs
from service.store.crashes import MAX_CRASHES, Crash, Crashes
from service.store.programs import Entry, Programs
from tensorkiln.errors import CrashedError, TensorkilnError, UnavailableError, error_from_problem

from .order import Made, Order, Rendered, Wanted
from .protocol import Tell
from .reproducer import compile_reproducer, needs_reproducer, with_reproducer
from .stated import Stated

_log = structlog.get_logger()


class LocalEngine:
    """Compiles in `sandbox` within `limits`; what comes of it is kept in `blobs`, `programs` and `crashes`."""

    def __init__(self, sandbox: Sandbox, limits: Limits, blobs: Blobs, programs: Programs, crashes: Crashes) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._blobs = blobs
        self._programs = programs
        self._crashes = crashes
        self._making: dict[str, asyncio.Task[Made]] = {}

    async def start(self) -> None:
        """The sandbox is started by whoever made it."""

    async def check(self) -> None:
        """An order that can be forked can be taken, and that is seen to elsewhere."""

    async def submit(self, order: Order, tell: Tell) -> str:
        """Begin at once."""
        ticket = token_hex(8)
        self._making[ticket] = asyncio.create_task(self.make(order, tell))
        return ticket

    async def wait(self, ticket: str) -> Made:
        """As the protocol has it."""
        making = self._making[ticket]
        try:
            return await asyncio.shield(making)
        finally:
            if making.done():
                self._making.pop(ticket, None)

    async def cancel(self, ticket: str) -> None:
        """End its process."""
        making = self._making.pop(ticket, None)
        if making is not None:
            making.cancel()
            await asyncio.wait([making])

    async def close(self) -> None:
        """End what is under way."""
        for ticket in tuple(self._making):
            await self.cancel(ticket)

    async def make(self, order: Order, tell: Tell) -> Made:
        """Carry an order out. What crashes is begun MAX_CRASHES times in all, wherever that happens, and then known."""
        wanted = order.wanted
        key = _crash_key(wanted)
        known = await self._crashes.find(key) if key is not None else None
        if known is not None and known.is_final:
            error = error_from_problem(known.problem)
            raise type(error)(error.message, pointers=error.pointers, details={**error.details, "cached": True})
        attempts = 1 + (known.attempts if known is not None else 0)
        while True:
            try:
                return await self._attempt(order, attempts, tell)
            except TensorkilnError as error:
                told = await self._explained(wanted, error, attempts)
                if key is None or not isinstance(error, CrashedError):
                    raise told from None
                await self._crashes.save(key, Crash(attempts, told.to_problem(), time.time()))
                if attempts >= MAX_CRASHES:
                    raise told from None
                attempts += 1
                tell({"stage": "retry", "attempt": attempts})

    async def _attempt(self, order: Order, attempts: int, tell: Tell) -> Made:
        begin = time.monotonic()
        wanted = order.wanted
        answer = await self._sandbox.run("compile", _request(order), self._limits, _stages(tell))
        run_s = time.monotonic() - begin
        entry = await self._store(answer, [] if wanted.renaming is None else ["answer", "repeat"])
        if wanted.hook is None:
            keep = self._programs.save if order.replaces else self._programs.offer
            saved = await keep(wanted.action, entry)
            if saved.program != entry.program:
                # Somebody was first. Both are good, and everybody is to get the same.
                earlier = await self._blobs.get(saved.program)
                if earlier is None:
                    raise UnavailableError("The store lost a program; send the request again.")
                return Made(earlier, saved, None, run_s, attempts)
            entry = saved
        parts, renaming = answer.parts, wanted.renaming
        rendered = Rendered(renaming, parts["answer"], parts["repeat"]) if renaming is not None else None
        return Made(parts["program"], entry, rendered, run_s, attempts)

    async def _explained(self, wanted: Wanted, error: TensorkilnError, attempts: int) -> TensorkilnError:
        digest, stage = wanted.action.digest, error.details.get("stage")
        _log.warning("a compile failed", code=error.code, digest=digest, stage=stage, attempt=attempts)
        if not needs_reproducer(error):
            return error
        told = await with_reproducer(error, compile_reproducer(wanted.graph, wanted.action), self._blobs)
        return type(told)(told.message, pointers=told.pointers, details={**told.details, "attempts": attempts})

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


def _crash_key(wanted: Wanted) -> str | None:
    """Under what a crash is remembered: a hook that is not part of the graph says nothing about the graph."""
    if wanted.hook is None:
        return wanted.action.digest
    return f"{wanted.action.digest}.{wanted.hook}" if wanted.is_poison else None


def _stages(tell: Tell) -> Callable[[str], None]:
    return lambda stage: tell({"stage": stage})


def _request(order: Order) -> Message:
    wanted, action = order.wanted, order.wanted.action
    header: dict[str, Any] = {
        "digest": action.digest,
        "target": action.target,
        "options": {**action.options, "dump_stages": wanted.with_dumps},
        "provenance": {"build_id": action.build_id, "versions": build().versions},
        "cache": order.cache,
        **({"hook": wanted.hook} if wanted.hook is not None else {}),
    }
    parts = {"graph": wanted.graph}
    return Message(header, parts if wanted.renaming is None else {**parts, "renaming": wanted.renaming})

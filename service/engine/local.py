"""The back end on this machine: compiles in processes that the fork server of the sandbox forks."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import structlog

from service import clock
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.reply import CompileHeader, checked, invalid, require_tuning
from service.sandbox.sandbox import Sandbox
from service.store.attempts import MAX_CRASHES, Crash, Crashes
from service.store.blobs import Blobs
from service.store.claims import LEASE_S
from service.store.programs import MEASURE, Entry, Miss, Programs
from tensorkiln.compiler_build import build
from tensorkiln.errors import CrashedError, TensorkilnError, UnavailableError, error_from_problem

from .order import Made, OnProgress, Order, Rendered, Wanted
from .reproducer import compile_reproducer, needs_reproducer, with_details, with_reproducer

_LOOK_EVERY_S: Final = 0.1
"""Seconds between looks for the result of a compile that another process runs."""

_log = structlog.get_logger()


@dataclass(eq=False)
class LocalEngine:
    """Compiles in `sandbox` within `limits`; results are stored in `blobs`, `programs` and `crashes`."""

    _sandbox: Sandbox
    _limits: Limits
    _blobs: Blobs
    _programs: Programs
    _crashes: Crashes

    async def close(self) -> None:
        """Wait until all records of attempts are written. Orders end with the tasks that wait for them."""
        await self._crashes.settle()

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        """Carry an order out. A compile that crashes is started MAX_CRASHES times by all processes together."""
        has_crashed = False
        until = clock.monotonic() + self._limits.deadline_s + LEASE_S
        while True:
            attempt = await self._crashes.begin(order.wanted.action.digest)
            if isinstance(attempt, Crash):
                cached = {} if has_crashed else {"cached": True}
                raise with_details(error_from_problem(attempt.problem), attempts=MAX_CRASHES, **cached)
            if attempt is None:
                if not order.replaces:  # another process may have made the program
                    found = await self._programs.load(order.wanted.action, with_dumps=order.wanted.with_dumps)
                    if not isinstance(found, Miss):
                        return Made(found[1], found[0], None)
                if clock.monotonic() > until:
                    raise UnavailableError("Another attempt at this compile takes too long; send the request again.")
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            if has_crashed:
                on_progress({"stage": "retry", "attempt": attempt.number})
            async with attempt:
                try:
                    return await self._attempt(order, on_progress)
                except CrashedError as error:
                    has_crashed = True
                    await attempt.crash(self._problem(order.wanted, error, attempt.number))
                except TensorkilnError as error:
                    raise await self._explained(order.wanted, error, attempt.number) from None

    async def _attempt(self, order: Order, on_progress: OnProgress) -> Made:
        begin = clock.monotonic()
        wanted = order.wanted
        try:
            answer = await self._sandbox.run(
                "tune" if wanted.action.tuned == MEASURE else "compile",
                await self._request(order),
                self._limits,
                lambda stage: on_progress({"stage": stage}),
                spending=order.cost,
            )
        finally:
            order.cost.run_s += clock.monotonic() - begin
        if wanted.action.tuned == MEASURE:
            require_tuning(answer)
        entry = await self._store(answer, [] if wanted.renaming is None else ["answer"])
        order.computed()
        keep = self._programs.save if order.replaces else self._programs.offer
        saved = await keep(wanted.action, entry)
        if saved.program != entry.program:
            # Another process was first. Both programs are correct, but every caller must get the same one.
            earlier = await self._blobs.get(saved.program)
            if earlier is None:
                raise UnavailableError("The store lost a program; send the request again.")
            return Made(earlier, saved, None)
        rendered = Rendered(wanted.renaming, answer.parts["answer"]) if wanted.renaming is not None else None
        return Made(answer.parts["program"], saved, rendered)

    async def _request(self, order: Order) -> Message:
        wanted, action = order.wanted, order.wanted.action
        header: dict[str, Any] = {
            "digest": action.digest,
            "target": action.target,
            "options": {**action.options, "dump_stages": wanted.with_dumps},
            "provenance": {"build_id": action.build_id, "versions": build().versions},
            "cache": order.cache,
        }
        parts = {"graph": wanted.graph}
        if wanted.renaming is not None:
            parts["renaming"] = wanted.renaming
        if action.is_tuned:
            tuning = await self._blobs.get(action.tuned)
            if tuning is None:
                raise UnavailableError("The store lost measurements; send the request again.")
            parts["tuning"] = tuning
        return Message(header, parts)

    async def _problem(self, wanted: Wanted, error: TensorkilnError, attempts: int) -> dict[str, Any]:
        return (await self._explained(wanted, error, attempts)).to_problem()

    async def _explained(self, wanted: Wanted, error: TensorkilnError, attempts: int) -> TensorkilnError:
        digest, stage = wanted.action.digest, error.details.get("stage")
        _log.warning("a compile failed", code=error.code, digest=digest, stage=stage, attempt=attempts)
        if not needs_reproducer(error):
            return error
        explained = await with_reproducer(error, compile_reproducer(wanted.graph, wanted.action), self._blobs)
        return with_details(explained, attempts=attempts)

    async def _store(self, answer: Message, besides: Collection[str]) -> Entry:
        """Store the bytes of a compile. CrashedError when a stated digest is wrong, or a part in `besides` missing."""
        made = checked(CompileHeader, answer.header)
        stated = {f"artifact:{digest}": digest for digest in made.artifacts}
        stated |= {f"dump:{stage}": digest for stage, digest in made.stages.items()}
        parts = answer.parts
        if not parts.keys() >= {"program", *stated, *besides}:
            raise invalid("It names bytes that it does not give.")
        program, *digests = await asyncio.gather(*(self._blobs.put(parts[name]) for name in ("program", *stated)))
        if digests != list(stated.values()):
            raise invalid("It names a digest that its bytes do not have.")
        entry = Entry(program, made.artifacts, made.stages, made.seconds)
        if not await self._blobs.holds(entry.blobs):
            raise UnavailableError("The store lost the program that was written to it; send the request again.")
        return entry

"""What the routes call."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from service.action import Action
from service.body import Body
from service.build_id import build
from service.sandbox.control import Limits, Ready
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.location import open_store
from service.store.programs import Programs
from service.store.records import Records
from service.store.repeats import Repeats
from tensorkiln.errors import TensorkilnError, UnavailableError

from .compiles import Compiles
from .flights import Flights
from .lane import Lane
from .pointers import in_user_terms
from .reproducer import needs_reproducer, with_reproducer

COMPILER: Final = "passes.compile"

# How long one look at the fork server and the store is good for.
_CHECK_S: Final = 5.0
_CHECK_LIMITS: Final = Limits(deadline_s=5.0, memory_mib=256, file_mib=1)


class Engine:
    """The compiler with its store. Every method raises TensorkilnError alone."""

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._store = open_store(settings.store_location)
        self._records = Records(self._store)
        self.blobs = Blobs(self._store)
        self.programs = Programs(self._records, self.blobs)
        epoch = f"{build().build_id}\n{settings.salt}"
        self._repeats = Repeats(self._records, self.blobs, epoch, settings.answer_memory_mib << 20)
        # Apart from the compiles, so that a hit does not wait for them.
        self._short_jobs = Lane(settings.concurrency, settings.queue)
        self.compiles = Compiles(
            sandbox, Lane(settings.concurrency, settings.queue), settings.limits, self.blobs, self.programs
        )
        self._answers: Flights[bytes] = Flights()
        self._checked_at = float("-inf")
        self._is_closing = False

    async def start(self) -> Ready:
        """Start the sandbox and see that everything works."""
        ready = await self._sandbox.start()
        await self.check()
        return ready

    async def close(self) -> None:
        """Cancel what is under way and end every process."""
        self._is_closing = True
        await self._answers.close()
        await self.compiles.close()
        await self._sandbox.close()

    def drain(self) -> None:
        """From now on the service does not call itself ready."""
        self._is_closing = True

    async def check(self) -> None:
        """UnavailableError when the service is shutting down, forks no process, or cannot write to its store."""
        if self._is_closing:
            raise UnavailableError("The service is shutting down.")
        if time.monotonic() - self._checked_at < _CHECK_S:
            return
        await self._sandbox.run("ping", Message(), _CHECK_LIMITS)
        await self._records.put("canary", {"build_id": build().build_id})
        if await self._records.get("canary") is None:
            raise UnavailableError("The store does not keep what is written to it.")
        self._checked_at = time.monotonic()

    async def compile(self, body: Body, hook: str | None = None) -> bytes:
        """The body of the answer to a compile request. `hook` is the test hook that its compile is to run into."""
        if hook is not None:
            return await self._answer(body, None, hook)
        key = self._repeats.key(body.digest)
        repeated = await self._repeats.find(key)
        if repeated is not None:
            return repeated
        return await self._answers.join(key, lambda: self._answer(body, key, None))

    async def validate(self, body: Body) -> bytes:
        """The body of the answer to a validation."""
        return (await self._run("validate", Message({}, {"body": body.content}), body)).parts["answer"]

    async def _answer(self, body: Body, key: str | None, hook: str | None) -> bytes:
        job, _, name = hook.rpartition(":") if hook is not None else ("", "", None)
        header = {"build_id": build().build_id, "salt": self._settings.salt}
        if job == "prepare":
            header["hook"], name = str(name), None
        prepared = await self._run("prepare", Message(header, {"body": body.content}), body)
        graph, renaming = prepared.parts["graph"], prepared.parts["renaming"]
        actions = [Action.from_components(components) for components in prepared.header["actions"]]
        with_dumps = bool(prepared.header["dump_stages"])
        try:
            compiled = await asyncio.gather(
                *(self.compiles.program(action, graph, with_dumps=with_dumps, hook=name) for action in actions)
            )
        except TensorkilnError as error:
            raise in_user_terms(error, renaming) from None
        parts = {f"program:{position}": each.program for position, each in enumerate(compiled)}
        request = Message({"caches": [dict(each.cache) for each in compiled]}, {"renaming": renaming, **parts})
        rendered = await self._run("render", request, body)
        if key is not None:
            blobs = dict.fromkeys(digest for each in compiled for digest in each.blobs)
            await self._repeats.save(key, rendered.parts["repeat"], tuple(blobs))
        return rendered.parts["answer"]

    async def _run(self, kind: str, request: Message, body: Body) -> Message:
        try:
            async with self._short_jobs:
                return await self._sandbox.run(kind, request, self._settings.limits)
        except TensorkilnError as error:
            if not needs_reproducer(error):
                raise
            raise await with_reproducer(error, body.content, self.blobs) from None

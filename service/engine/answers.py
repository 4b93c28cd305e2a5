"""Answers requests: repeats a stored answer or makes a new one; and questions about a request, without compiling it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from service import clock
from service.fairness.queue_time import telling_queue_time
from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.observe.instruments import count_cache
from service.sandbox.frames import Message
from service.store.repeats import Repeat, Repeats
from service.trust.notary import Notary, with_signatures
from service.wire.answers import SAME_ACTION, SAME_REQUEST, Explanation
from service.wire.body import Body
from tensorkiln.errors import CrashedError, InfrastructureError, RateLimitedError, TensorkilnError, error_from_problem
from tensorkiln.spec import CacheInfo
from tensorkiln.trust import SignedRecord

from .compiles import Compiled, Compiles
from .flights import Flights
from .order import OnProgress, Progress, Wanted
from .reader import Prepared, Reader, believable, described, in_user_terms, rendered, split

KNOWN_S: Final = 10.0
"""Seconds after which the store is read again: crashes expire there, and an operator may remove them."""
MAX_KNOWN: Final = 256
T = TypeVar("T")


class KnownCrashes:
    """The last MAX_KNOWN requests that ended in a crash which the store remembers."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    @contextmanager
    def raising_known(self, request: str) -> Generator[None]:
        """Run a block that answers a request. CrashedError at once if the request has ended in a known crash."""
        now = clock.monotonic()
        self._known = {each: known for each, known in self._known.items() if now - known[0] < KNOWN_S}
        if request in self._known:
            raise error_from_problem(self._known[request][1])
        try:
            yield
        except CrashedError as error:
            if error.details.get("cached"):
                self._known[request] = clock.monotonic(), error.to_problem()
                while len(self._known) > MAX_KNOWN:
                    del self._known[next(iter(self._known))]
            raise


@dataclass(eq=False)
class Answers:
    """Answers requests. With `seals`, answers are stored to be repeated, else they are only kept in memory."""

    _reader: Reader
    _compiles: Compiles
    _repeats: Repeats
    _tenancy: Tenancy
    _fairness: Fairness
    _notary: Notary
    _seals: bool
    _flights: Flights[bytes, Progress] = field(default_factory=Flights[bytes, Progress], init=False)
    _crashed: KnownCrashes = field(default_factory=KnownCrashes, init=False)

    async def repeated(self, body: Body) -> bytes | None:
        """The stored answer to a byte-for-byte equal request; None when there is none."""
        found = await self.repeat(body)
        if found is None:
            return None
        for _ in found.programs:
            count_cache(SAME_REQUEST.status, SAME_REQUEST.reason)
        return found.answer

    async def repeat(self, body: Body) -> Repeat | None:
        """The stored repeat of a request; None when there is none, or when the caller may not read the store."""
        return await self._repeats.find(self._key(body)) if self._tenancy.reads_store else None

    async def compile(self, body: Body, on_progress: OnProgress = lambda _: None) -> bytes:
        """The body of the answer to a compile request. `on_progress` gets each `stage`, and its `target`."""
        with self._fairness.request():
            return await self.make(body, on_progress)

    async def make(self, body: Body, on_progress: OnProgress) -> bytes:
        """As `compile`, for a request that already counts against the limits of its tenant."""
        key = self._key(body)
        async with self._tenancy.reproducers(), telling_queue_time():
            with self._crashed.raising_known(key):
                flight = (key, self._tenancy.equals)
                return await self._flights.join(
                    flight, lambda on_progress: self._answer(body, key, on_progress), on_progress
                )

    async def split(self, body: Body) -> tuple[Body | TensorkilnError, ...]:
        """The compile requests of a batch, each a body or its error, in their order."""
        return await self._read(lambda: self._reader.run("split", body, split))

    async def validate(self, body: Body) -> bytes:
        """The body of the answer to a validation."""
        return await self._read(lambda: self._reader.run("validate", body, described))

    async def translate(self, body: Body) -> bytes:
        """The body of the answer to a translation of a module, or of lines of the builder, to a graph."""
        return await self._read(lambda: self._reader.run("translate", body, described))

    async def explain(self, body: Body) -> bytes:
        """The body that says whether a request would hit the cache; its caller needs the right to read programs."""
        prepared = await self._read(lambda: self._reader.prepare(body))
        hit = SAME_REQUEST if await self.repeat(body) is not None else SAME_ACTION
        explained = (self._compiles.explain(each, hit, with_dumps=prepared.dump_stages) for each in prepared.actions)
        explanation = Explanation(actions=tuple(await asyncio.gather(*explained)))
        return explanation.model_dump_json(by_alias=True).encode()

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        async with self._tenancy.reproducers():
            with self._fairness.request():
                return await read()

    async def close(self) -> None:
        await self._flights.close()

    def _key(self, body: Body) -> str:
        return self._repeats.key(self._tenancy.request_digest(body.digest))

    async def _answer(self, body: Body, key: str, on_progress: OnProgress) -> bytes:
        def on_stage(stage: str) -> None:
            on_progress({"stage": stage, "target": None})

        prepared = await self._reader.prepare(body, on_stage)
        compiled, answer = await self._compiled(prepared, body, on_progress)
        signatures = [each.entry.signature for each in compiled]
        blobs = dict.fromkeys(digest for each in compiled for digest in each.blobs)
        programs = dict.fromkeys(each.action.digest for each in compiled)
        await self._tenancy.grant([*programs, *blobs])
        # If `tuned` was resolved by the store, the same request may get other measurements next time.
        if programs.keys() == {action.digest for action in prepared.actions}:
            keys = dict.fromkeys(SignedRecord.model_validate_json(each).record.key for each in signatures)
            repeat = with_signatures(repeated(answer, compiled), signatures)
            # Each program was signed or believed at this level.
            level = self._notary.isolation
            kept = Repeat(repeat, tuple(blobs), tuple(programs), tuple(keys), isolation=level)
            # A caller without the scope to compile stores nothing.
            if self._seals and self._tenancy.may_compile:
                await self._repeats.save(key, kept)
            else:
                self._repeats.remember(key, kept)
        return with_signatures(answer, signatures)

    async def _compiled(
        self, prepared: Prepared, body: Body, on_progress: OnProgress
    ) -> tuple[Sequence[Compiled], bytes]:
        """The programs of a request, and the answer rendered from them."""
        renaming = prepared.renaming
        try:
            compiled = await programs_of(prepared, self._compiles, on_progress)
        except TensorkilnError as error:
            raise in_user_terms(error, renaming) from None
        made = compiled[0].rendered
        if made is not None and made.renaming == renaming:
            return compiled, believable(made.answer)
        return compiled, await self._render(compiled, renaming, body)

    async def _render(self, compiled: Sequence[Compiled], renaming: bytes, body: Body) -> bytes:
        parts = {f"program:{position}": each.program for position, each in enumerate(compiled)}
        header = {
            "caches": [dict(each.cache) for each in compiled],
            "seconds": [dict(each.entry.seconds) for each in compiled],
            "stages": [dict(each.entry.stages) for each in compiled],
        }
        request = Message(header, {**parts, "renaming": renaming})
        return await self._reader.run("render", body, rendered, request)


def repeated(answer: bytes, compiled: Sequence[Compiled]) -> bytes:
    """The answer to a request, as it is when the request is sent again."""
    # Only the field itself has these bytes: quotes inside a string are escaped.
    for cache in {_cache(CacheInfo.model_validate(each.cache)) for each in compiled}:
        answer = answer.replace(cache, _cache(SAME_REQUEST))
    return answer


def _cache(info: CacheInfo) -> bytes:
    return b'"cache":' + info.model_dump_json().encode()


async def programs_of(prepared: Prepared, compiles: Compiles, on_progress: OnProgress) -> Sequence[Compiled]:
    """The programs of all targets. `on_progress` gets the progress of each, with its position as `target`.

    When one fails permanently, the others are cancelled. After a transient error they go on, so that a retry of the
    request finds their programs.
    """

    def progress_of(target: int) -> OnProgress:
        return lambda progress: on_progress({**progress, "target": target})

    renaming = prepared.renaming if len(prepared.actions) == 1 else None
    wanted = [Wanted(action, prepared.graph, prepared.dump_stages, renaming) for action in prepared.actions]
    tasks = [asyncio.create_task(compiles.program(each, progress_of(target))) for target, each in enumerate(wanted)]
    try:
        return await asyncio.gather(*tasks)
    except (InfrastructureError, RateLimitedError):
        raise
    except BaseException:
        while tasks:
            tasks.pop().cancel()
        raise
    finally:
        # The error of a task refers to this frame by its traceback: the reference cycle would keep the graph alive.
        tasks.clear()

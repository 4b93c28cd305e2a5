"""From a compile request to its answer: the one that was given before, or one that is made now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from service.fairness.queue_time import telling_queue_time
from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.observe.instruments import count_cache
from service.readiness.readiness import Readiness
from service.sandbox.frames import Message
from service.store.repeats import Repeat, Repeats
from service.trust.attach import with_signatures
from service.trust.notary import Notary
from service.wire.body import Body
from service.wire.hit_reasons import SAME_REQUEST
from tensorkiln.errors import TensorkilnError
from tensorkiln.trust import SignedRecord

from .compiles import Compiled, Compiles
from .flights import Flights
from .known_crashes import KnownCrashes
from .lookup import Answered, Asked, Lookup, to_render
from .order import News, Rendered, Tell
from .pointers import in_user_terms
from .reader import Reader, of_actions
from .task_answers import believable, rendered


class Answers:
    """Answers are read and written by `reader`, their programs found and made by `compiles`.

    None leaves before the verdict of `readiness` about the start, for which a first compile that ends well replaces the
    canary. One that `seals` keeps what it answered in the store; the others, which have no key for that, remember it.
    """

    def __init__(
        self,
        reader: Reader,
        compiles: Compiles,
        repeats: Repeats,
        tenancy: Tenancy,
        fairness: Fairness,
        notary: Notary,
        readiness: Readiness,
        *,
        seals: bool,
    ) -> None:
        self._reader = reader
        self._compiles = compiles
        self._repeats = repeats
        self._tenancy = tenancy
        self._fairness = fairness
        self._notary = notary
        self._readiness = readiness
        self._seals = seals
        self._flights: Flights[bytes, News] = Flights()
        self._crashed = KnownCrashes()

    async def repeated(self, body: Body) -> bytes | None:
        """The body of the answer to a request that was made before, byte for byte; None when there is none."""
        found = await self.repeat(body)
        if found is None:
            return None
        await self._readiness.started()
        for _ in found.programs:
            count_cache(SAME_REQUEST.status, SAME_REQUEST.reason)
        return found.answer

    async def repeat(self, body: Body) -> Repeat | None:
        """What is known of such a request, if anything that the caller may read."""
        return await self._repeats.find(self._key(body)) if self._tenancy.reads_store else None

    async def compile(self, body: Body, tell: Tell = lambda _: None) -> bytes:
        """The body of the answer to a compile request that is no `repeated` one.

        `tell` gets the stages as they begin: `stage`, and `target`, the position of the target that is compiled for.
        """
        with self._fairness.request():
            return await self.make(body, tell)

    async def make(self, body: Body, tell: Tell) -> bytes:
        """As `compile`, of a request that is counted already."""
        key = self._key(body)
        async with self._tenancy.reproducers(), telling_queue_time():
            with self._crashed.raising_known(key):
                flight = (key, self._tenancy.equals)
                return await self._flights.join(flight, lambda tell: self._answer(body, key, tell), tell)

    async def close(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    def _key(self, body: Body) -> str:
        return self._repeats.key(self._tenancy.request_digest(body.digest))

    async def _answer(self, body: Body, key: str, tell: Tell) -> bytes:
        salt = self._tenancy.salt
        lookup = Lookup(salt, self._compiles)

        def tell_stage(stage: str) -> None:
            tell({"stage": stage, "target": None})

        asked, found = await self._reader.run("answer", body, lookup.read, of_actions(body, salt), tell_stage, lookup)
        found = found or await self._compiled(asked, body, tell)
        await self._readiness.started()
        signatures = [each.entry.signature for each in found.compiled]
        blobs = dict.fromkeys(digest for each in found.compiled for digest in each.blobs)
        programs = dict.fromkeys(each.action.digest for each in found.compiled)
        await self._tenancy.grant([*programs, *blobs])
        # What is stored of measurements may be more the next time.
        if programs.keys() == {action.digest for action in asked.prepared.actions}:
            keys = dict.fromkeys(SignedRecord.model_validate_json(each).record.key for each in signatures)
            repeat = with_signatures(found.answers.repeat, signatures)
            # Each program was signed or believed at this level.
            level = self._notary.isolation
            await self._keep(key, Repeat(repeat, tuple(blobs), tuple(programs), tuple(keys), isolation=level))
        return with_signatures(found.answers.answer, signatures)

    async def _compiled(self, asked: Asked, body: Body, tell: Tell) -> Answered:
        renaming = asked.prepared.renaming
        try:
            compiled = await asked.programs(self._compiles, tell)
        except TensorkilnError as error:
            await self._readiness.started()  # It may fail for the same reason, which says more.
            raise in_user_terms(error, renaming) from None
        answers = compiled[0].rendered
        if answers is not None and answers.renaming == renaming:
            answered = Answered(compiled, believable(answers))
        else:
            answered = Answered(compiled, await self._render(compiled, renaming, body))
        if answers is not None:
            self._readiness.prove()  # It was made here, and is believed.
        return answered

    async def _keep(self, key: str, repeat: Repeat) -> None:
        # A caller without the scope to compile stores nothing.
        if self._seals and self._tenancy.may_compile:
            await self._repeats.save(key, repeat)
        else:
            self._repeats.remember(key, repeat)

    async def _render(self, compiled: Sequence[Compiled], renaming: bytes, body: Body) -> Rendered:
        programs = to_render(compiled)
        request = Message(programs.header, {**programs.parts, "renaming": renaming})
        return await self._reader.run("render", body, partial(rendered, renaming=renaming), request)

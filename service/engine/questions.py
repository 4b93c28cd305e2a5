"""Answers questions about a request without compiling it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from service.action import Action
from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.store.nearest import Nearest, shown
from service.store.programs import Miss, Programs
from service.wire.answers import SAME_ACTION, SAME_REQUEST, Components, ExplainedAction, Explanation
from service.wire.body import Body
from tensorkiln.errors import NotFoundError, TensorkilnError
from tensorkiln.spec import CacheInfo

from .answers import Answers
from .explain import NOT_READ, Tunings, differences_from, miss_of, missed
from .reader import Reader, described, split

T = TypeVar("T")


@dataclass(eq=False)
class Questions:
    """Splits, validates and translates requests by `reader`, and explains them by what the store has."""

    _reader: Reader
    _fairness: Fairness
    _tenancy: Tenancy
    _answers: Answers
    _programs: Programs
    _nearest: Nearest
    _tunings: Tunings

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
        hit = SAME_REQUEST if await self._answers.repeat(body) is not None else SAME_ACTION
        explained = (self._one(action, hit, with_dumps=prepared.dump_stages) for action in prepared.actions)
        explanation = Explanation(actions=tuple(await asyncio.gather(*explained)))
        return explanation.model_dump_json(by_alias=True).encode()

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        async with self._tenancy.reproducers():
            with self._fairness.request():
                return await read()

    async def _one(self, asked: Action, hit: CacheInfo, *, with_dumps: bool) -> ExplainedAction:
        reads_store = self._tenancy.reads_store
        try:
            action = (await self._tunings.settled(asked) if reads_store else None) or asked
        except NotFoundError as error:
            return _explained(asked, missed(error.message))
        if not reads_store:
            return _explained(action, NOT_READ)
        found = await self._programs.find(action, with_dumps=with_dumps)
        if not isinstance(found, Miss):
            return _explained(action, hit, stored=True)
        neighbour = None if found.reason else await self._nearest.to(action, self._tenancy.scope)
        is_stored = with_dumps and not isinstance(await self._programs.find(action, with_dumps=False), Miss)
        differences = differences_from(neighbour, shown(action))
        return _explained(action, miss_of(found, neighbour), stored=is_stored, differences=differences)


def _explained(action: Action, cache: CacheInfo, *, stored: bool = False, **more: Any) -> ExplainedAction:
    components = Components.model_validate(shown(action))
    return ExplainedAction(digest=action.digest, components=components, stored=stored, cache=cache, **more)

"""Answers questions about a request without compiling it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from service.fairness.turns import Fairness
from service.identity.tenancy import Tenancy
from service.sandbox.frames import Message
from service.wire.body import Body
from tensorkiln.errors import TensorkilnError

from .answers import Answers
from .explain import Explain
from .reader import Prepared, Reader, described, of_actions, split

T = TypeVar("T")


class Questions:
    """Splits, validates and translates requests by `reader`, and explains them by what the store has."""

    def __init__(
        self, reader: Reader, fairness: Fairness, tenancy: Tenancy, answers: Answers, explain: Explain
    ) -> None:
        self._reader = reader
        self._fairness = fairness
        self._tenancy = tenancy
        self._answers = answers
        self._explain = explain

    async def split(self, body: Body) -> tuple[Body | TensorkilnError, ...]:
        """The compile requests of a batch, each a body or its error, in their order."""
        return await self._read("split", body, split)

    async def validate(self, body: Body) -> bytes:
        """The body of the answer to a validation."""
        return await self._read("validate", body, described)

    async def translate(self, body: Body) -> bytes:
        """The body of the answer to a translation of a module, or of lines of the builder, to a graph."""
        return await self._read("translate", body, described)

    async def explain(self, body: Body) -> bytes:
        """The body of the answer that explains whether a compile request would hit the cache."""
        salt = self._tenancy.salt
        read = partial(Prepared.from_message, salt=salt)
        prepared = await self._read("prepare", body, read, of_actions(body, salt))
        is_repeated = await self._answers.repeat(body) is not None
        explanation = await self._explain.all(prepared.actions, is_repeated, with_dumps=prepared.dump_stages)
        return explanation.model_dump_json(by_alias=True).encode()

    async def _read(self, kind: str, body: Body, read: Callable[[Message], T], request: Message | None = None) -> T:
        async with self._tenancy.reproducers():
            with self._fairness.request():
                return await self._reader.run(kind, body, read, request)

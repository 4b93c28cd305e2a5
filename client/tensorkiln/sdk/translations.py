"""Graphs that a service translated from StableHLO modules, cached by module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Final

import msgspec

from ..cache import LocalCache
from ..compiler_build import Build
from ..errors import NotFoundError, TensorkilnError, UnavailableError
from ..graph import Graph
from ..immediate import Offload
from ..stablehlo import StableHlo

_MOST_IN_MEMORY: Final = 16
_DIGITS: Final = 64
_MOST_SAID: Final = 400
"""Characters of the error text that a message quotes."""


class _Translated(msgspec.Struct):
    graph: msgspec.Raw


_answer: Final = msgspec.json.Decoder(_Translated).decode


@dataclass(eq=False)
class Translations:
    """Translations by the service `authority`. `ask` sends a request body and returns the answer; None when offline.

    With `build`, that of an embedded service, the disk cache is current and read before the service is asked.
    """

    _authority: str
    _ask: Callable[[bytes], Awaitable[bytes]] | None
    _kept: LocalCache
    _offload: Offload
    _build: Callable[[], Build] | None
    _memory: OrderedDict[str, Graph] = field(default_factory=OrderedDict[str, Graph], init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    async def graph(self, module: StableHlo) -> Graph:
        """The graph of a module. NotFoundError when offline and not cached; else the service's errors."""
        body = await self._offload(module.body)
        name = await self._offload(lambda: self._name(body))
        with self._lock:
            found = self._memory.get(name)
        if found is None and (self._ask is None or self._build is not None):
            found = await self._offload(lambda: self._read(name))
        if found is None:
            if self._ask is None:
                raise NotFoundError(
                    f"The cache has no translation of this module by {self._authority}; compile it once "
                    "without offline."
                )
            answer = await self._ask(body)
            found = await self._offload(lambda: self._learned(name, answer))
        self._remember(name, found)
        return found

    def _name(self, body: bytes) -> str:
        build = self._build().build_id if self._build is not None else ""
        return sha256(b"\n".join([b"translation", self._authority.encode(), build.encode(), body])).hexdigest()

    def _learned(self, name: str, answer: bytes) -> Graph:
        try:
            text = bytes(_answer(answer).graph)
            graph = Graph.model_validate_json(text)
        except Exception as error:
            # A malformed answer is the service's fault, not an error in the caller's request.
            raise UnavailableError(
                f"The service's answer is not a graph that this SDK understands ({str(error)[:_MOST_SAID]}); "
                "use the same version of both."
            ) from None
        self._kept.write(name, sha256(text).hexdigest().encode() + text)
        return graph

    def _read(self, name: str) -> Graph | None:
        content = self._kept.read(name)
        if content is None:
            return None
        text = content[_DIGITS:]
        if sha256(text).hexdigest().encode() == content[:_DIGITS]:
            try:
                return Graph.model_validate_json(text)
            except TensorkilnError:
                # Written by another version of the SDK.
                pass
        self._kept.remove(name)
        return None

    def _remember(self, name: str, graph: Graph) -> None:
        with self._lock:
            self._memory[name] = graph
            self._memory.move_to_end(name)
            if len(self._memory) > _MOST_IN_MEMORY:
                self._memory.popitem(last=False)

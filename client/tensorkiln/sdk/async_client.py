"""The client in an event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from ..async_wire import AsyncWire
from .asked import OptionsSource, TargetSource
from .async_job import AsyncJob
from .batch import outcomes
from .calls import Calls
from .client import Client
from .job import Job
from .outcome import LaterGraph, Outcome


class AsyncClient(Calls):
    """`Client` in an asyncio event loop: the same arguments, methods and errors, to be awaited.

    What takes a while, such as reading a graph or verifying a program, is done by threads; so is a function that
    gives tokens called. Calls may be under way at once, and each is given up when its task is cancelled. The programs
    that come back are those of a `Client`, and run where they are called.

    Use it in an `async with` block, or await `close`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        api_key: str | Callable[[], str] | None = None,
        trusted_keys: Sequence[str] | None = None,
        min_isolation: str | None = None,
        offline: bool | None = None,
    ) -> None:
        super().__init__(
            AsyncWire(),
            url,
            timeout_s=timeout_s,
            cache_dir=cache_dir,
            api_key=api_key,
            trusted_keys=trusted_keys,
            min_isolation=min_isolation,
            offline=offline,
        )

    def compile_many(
        self,
        graphs: Iterable[LaterGraph],
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        concurrency: int = 8,
        from_store: bool = False,
    ) -> AsyncGenerator[Outcome]:
        return outcomes(self, graphs, targets, options, concurrency, from_store, self._transport.require_open)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _describe(described: type, by: type) -> None:
    for name, method in vars(by).items():
        if not name.startswith("_") and (callable(method) or isinstance(method, property)):
            getattr(described, name).__doc__ = method.__doc__


_describe(AsyncClient, Client)
_describe(AsyncJob, Job)

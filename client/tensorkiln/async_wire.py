"""A wire in an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import httpx2

from .wire import SETTLE_S, Address, Incoming, Outgoing

A = TypeVar("A")
T = TypeVar("T")


class AsyncWire:
    """Suspends while it waits; what takes a while is done by a thread. Closing a line ends the pauses in its loop."""

    def __init__(self) -> None:
        self._pauses: defaultdict[int, set[asyncio.Event]] = defaultdict(set)

    @property
    def place(self) -> int:
        return id(asyncio.get_running_loop())

    def open(self, address: Address, headers: Mapping[str, str]) -> AsyncLine:
        return AsyncLine(address, headers, self._pauses[self.place])

    async def pause(self, seconds: float) -> None:
        pauses, closed = self._pauses[self.place], asyncio.Event()
        pauses.add(closed)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), seconds)
        finally:
            pauses.discard(closed)

    async def apart(self, work: Callable[[], T], /) -> T:
        return await asyncio.to_thread(work)

    async def wholly(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=SETTLE_S)
            if not task.cancel() and not task.cancelled() and task.exception() is None:
                await undo(task.result())
            raise

    async def together(self, work: Callable[[A], Coroutine[Any, Any, T]], items: Sequence[A], most: int) -> Sequence[T]:
        free = asyncio.Semaphore(most)

        async def one(item: A) -> T:
            async with free:
                return await work(item)

        tasks = [asyncio.create_task(one(item)) for item in items]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()


class AsyncLine:
    """Connections that belong to one event loop; `pauses` are ended when they are closed."""

    def __init__(self, address: Address, headers: Mapping[str, str], pauses: Set[asyncio.Event]) -> None:
        self._pauses = pauses
        # As for a blocking line, no certificates are loaded for a socket file.
        local = httpx2.AsyncHTTPTransport(uds=address.socket, verify=False) if address.socket is not None else None
        self._http = httpx2.AsyncClient(base_url=address.url, headers=headers, transport=local)

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        async with self._http.stream(
            request.method,
            request.path,
            content=request.content,
            headers=request.headers,
            timeout=request.timeout,
        ) as response:
            yield Incoming(response, response.aiter_bytes(), httpx2.EventSource(response))

    async def close(self) -> None:
        for closed in self._pauses:
            closed.set()
        await self._http.aclose()

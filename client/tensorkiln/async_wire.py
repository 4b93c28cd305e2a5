"""A wire in an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Generic, Self, TypeVar

import httpx2

from .deadline import Deadline
from .proxy_environment import environment_errors
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
        # No TLS runs over a socket file: without this, building the client spends its time on loading certificates.
        local = httpx2.AsyncHTTPTransport(uds=address.socket, verify=False) if address.socket is not None else None
        with environment_errors():
            self._http = httpx2.AsyncClient(base_url=address.url, headers=headers, transport=local)

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        async with AsyncExitStack() as stack:
            asked = self._http.stream(
                request.method,
                request.path,
                content=request.content,
                headers=request.headers,
                timeout=request.timeout,
            )
            async with _until(request.deadline):
                response = await stack.enter_async_context(asked)
            chunks, events = response.aiter_bytes(), aiter(httpx2.EventSource(response))
            yield Incoming(response, _InTime(chunks, request.deadline), _InTime(events, request.deadline))

    async def close(self) -> None:
        for closed in self._pauses:
            closed.set()
        await self._http.aclose()


class _InTime(Generic[T]):
    """What there is of an answer, one item after the other, which different tasks may ask for."""

    def __init__(self, items: AsyncIterator[T], deadline: Deadline | None) -> None:
        self._items = items
        self._deadline = deadline

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        async with _until(self._deadline):
            return await anext(self._items)


@asynccontextmanager
async def _until(deadline: Deadline | None) -> AsyncGenerator[None]:
    """httpx2.ReadTimeout when the deadline comes before the end of this block."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline.left_s):
            yield
    except TimeoutError:
        raise httpx2.ReadTimeout("the answer is too slow") from None

"""Ways to send requests and to wait for answers: `BlockingWire` here, `tensorkiln.async_wire.AsyncWire` in a loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event, Thread, current_thread, main_thread
from typing import Any, Final, Protocol, TypeVar

import httpx2

from .connected import Connected
from .immediate import Immediate, here, run

A = TypeVar("A")
T = TypeVar("T")

SETTLE_S: Final = 5.0
"""How long somebody who is cancelled waits for the end of work that has to be undone."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, and the Unix socket that answers for it when there is one."""

    url: str
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request on its way."""

    method: str
    path: str
    content: bytes | None
    headers: Mapping[str, str]
    timeout: httpx2.Timeout


@dataclass(frozen=True, slots=True)
class Incoming:
    """An answer whose head is there. Its body is read once: as `chunks` of bytes, or as server-sent `events`."""

    response: httpx2.Response
    chunks: AsyncIterable[bytes]
    events: AsyncIterable[httpx2.ServerSentEvent]


class Line(Protocol):
    """The connections to one address."""

    def stream(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send a request; the context is open while its answer is read. httpx2.HTTPError when that fails."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class Wire(Protocol):
    """How this client sends and waits."""

    @property
    def place(self) -> int:
        """Lines that were opened in one place are of no use in another."""
        ...

    def open(self, address: Address, headers: Mapping[str, str]) -> Line:
        """A line whose requests all have `headers`. It connects when it is used."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait for so long."""
        ...

    async def apart(self, work: Callable[[], T], /) -> T:
        """The result of work that takes a while."""
        ...

    async def wholly(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
        """The result of work that is not to be left half done: who is cancelled meanwhile gets it undone.

        Whoever is cancelled waits SETTLE_S at most for the end of what is to be undone.
        """
        ...

    async def together(self, work: Callable[[A], Coroutine[Any, Any, T]], items: Sequence[A], most: int) -> Sequence[T]:
        """The results of `work` for every item, in order; at most `most` are under way at once."""
        ...


class BlockingWire:
    """Waits where it stands, so that no coroutine over it ever suspends; closing a line of it ends all pauses."""

    place = 0

    def __init__(self) -> None:
        self._closed = Event()

    def open(self, address: Address, headers: Mapping[str, str]) -> BlockingLine:
        return BlockingLine(address, headers, self._closed)

    async def pause(self, seconds: float) -> None:
        self._closed.wait(seconds)

    async def apart(self, work: Callable[[], T], /) -> T:
        return await here(work)

    async def wholly(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> T:
        if current_thread() is not main_thread():
            return await work
        # Ctrl-C breaks off whatever the main thread waits for, so that it must not be the one that does the work.
        result: Future[T] = Future()
        worker = Thread(target=copy_context().run, args=(_settle, result, work), name="kiln-whole", daemon=True)
        try:
            worker.start()
            wait([result])
        except BaseException:
            undone = Event()
            # However late it is done: by that time nobody may wait for this any more.
            result.add_done_callback(lambda done: _undo(done, undo, undone))
            undone.wait(SETTLE_S)
            raise
        return result.result()

    async def together(self, work: Callable[[A], Coroutine[Any, Any, T]], items: Sequence[A], most: int) -> Sequence[T]:
        with ThreadPoolExecutor(most, thread_name_prefix="kiln") as pool:
            return list(pool.map(lambda item: run(work(item)), items))


class BlockingLine:
    """Connections that any thread may use; `closed` is set, and whoever waits on one is woken, when they are closed."""

    def __init__(self, address: Address, headers: Mapping[str, str], closed: Event) -> None:
        # No TLS runs over a socket file: without this, building the client spends its time on loading certificates.
        local = httpx2.HTTPTransport(uds=address.socket, verify=False) if address.socket is not None else None
        self._connected = Connected(closed)
        hooks = {"request": [self._connected.watch]}
        self._http = httpx2.Client(base_url=address.url, headers=headers, transport=local, event_hooks=hooks)

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        with self._http.stream(
            request.method,
            request.path,
            content=request.content,
            headers=request.headers,
            timeout=request.timeout,
        ) as response:
            yield Incoming(response, Immediate(response.iter_bytes()), Immediate(httpx2.EventSource(response)))

    async def close(self) -> None:
        self._connected.hang_up()
        self._http.close()


def _settle(result: Future[T], work: Coroutine[Any, Any, T]) -> None:
    try:
        result.set_result(run(work))
    except BaseException as error:
        result.set_exception(error)


def _undo(done: Future[T], undo: Callable[[T], Coroutine[Any, Any, None]], undone: Event) -> None:
    try:
        if done.exception() is None:
            run(undo(done.result()))
    finally:
        undone.set()

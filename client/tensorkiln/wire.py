"""Ways to send requests and to wait for answers: `BlockingWire` here, `tensorkiln.async_wire.AsyncWire` in a loop.

The HTTP client is imported when there is something to send: what is kept needs none of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from .connected import Connected
from .deadline import Deadline
from .immediate import Immediate, here, run
from .proxy_environment import environment_errors

if TYPE_CHECKING:
    import httpx2

A = TypeVar("A")
T = TypeVar("T")

SETTLE_S: Final = 5.0
"""How long somebody who is cancelled waits for the end of work that has to be undone."""
_MOST_IDLE: Final = 20
"""Connections of a line that are kept for later requests."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, and the Unix socket that answers for it when there is one."""

    url: str
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request on its way. `timeout` is for each step of it, `deadline` for all of it, and its answer."""

    method: str
    path: str
    content: bytes | None
    headers: Mapping[str, str]
    timeout: httpx2.Timeout
    deadline: Deadline | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """An answer whose head is there. Its body is read once: as `chunks` of bytes, or as server-sent `events`."""

    response: httpx2.Response
    chunks: AsyncIterable[bytes]
    events: AsyncIterable[httpx2.ServerSentEvent]


class Line(Protocol):
    """The connections to one address."""

    def stream(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send a request; the context is open while its answer is read.

        httpx2.HTTPError when that fails. At the deadline an answer breaks off, or ends.
        """
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
        import httpx2

        self._address = address
        self._headers = headers
        self._closed = closed
        # To load certificates takes most of the time of building a client, and no TLS runs over a socket file.
        with environment_errors():
            self._trust = httpx2.create_ssl_context(verify=address.socket is None)
        self._lock = Lock()
        self._idle = [Connected(self._built)]
        self._busy: set[Connected] = set()

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        import httpx2

        with (
            self._taken() as connected,
            connected.until(request.deadline),
            connected.http.stream(
                request.method,
                request.path,
                content=request.content,
                headers=request.headers,
                timeout=request.timeout,
            ) as response,
        ):
            yield Incoming(response, Immediate(response.iter_bytes()), Immediate(httpx2.EventSource(response)))

    async def close(self) -> None:
        with self._lock:
            self._closed.set()
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for each in busy:
            each.hang_up()
        for each in idle:
            each.http.close()

    @contextmanager
    def _taken(self) -> Generator[Connected]:
        """A connection that nobody else has."""
        import httpx2

        with self._lock:
            connected = self._idle.pop() if self._idle else Connected(self._built)
            self._busy.add(connected)
            is_late = self._closed.is_set()
        if is_late:
            connected.hang_up()
        try:
            yield connected
        except httpx2.HTTPError:
            raise
        except BaseException:
            # A signal's handler may have raised it anywhere: what was under way is never over for the next request.
            connected.hang_up()
            raise
        finally:
            with self._lock:
                self._busy.remove(connected)
                is_kept = not (connected.is_broken or self._closed.is_set() or len(self._idle) >= _MOST_IDLE)
                if is_kept:
                    self._idle.append(connected)
            if not is_kept:
                connected.http.close()

    def _built(self, **more: Any) -> httpx2.Client:
        import httpx2

        uds, url = self._address.socket, self._address.url
        local = httpx2.HTTPTransport(uds=uds, verify=self._trust) if uds is not None else None
        with environment_errors():
            return httpx2.Client(base_url=url, headers=self._headers, transport=local, verify=self._trust, **more)


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

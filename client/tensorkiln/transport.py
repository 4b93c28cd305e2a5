"""HTTP between the client and its service: one deadline per call, safe retries, errors by their code."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from .coding import CODED_FROM_BYTES, coded
from .embedded import Address
from .errors import LimitExceededError, TensorkilnError, UnavailableError
from .ignored_key import IGNORED, IGNORED_HEADER, warn_of_ignored_key
from .retries import Deadline, Refusal, Retries, backoff_s, refusal
from .runner import LoopRunner
from .tracing import request_span
from .uncollected import uncollected

if TYPE_CHECKING:
    import httpx2

    from .connections import Connections

T = TypeVar("T")
Headers: TypeAlias = Mapping[str, str]
Endpoint: TypeAlias = tuple[Address, Headers]
"""The address of a service, and the headers that authenticate the caller."""

MAX_ANSWER_BYTES: Final = 256 << 20
"""The most decoded bytes of an answer per program in it: the most that one compile may return."""
STREAM_ATTEMPTS: Final = 40
"""The most reconnects of an event stream: a job survives a restart of its service, and so must the wait for it."""
QUIET_S: Final = 45.0
"""Seconds of silence after which an event stream counts as broken; a service sends a comment every 15 seconds."""
CHECK_S: Final = 10.0
"""The read timeout in seconds of a stream with a deadline; less than 15, so that the deadline is checked in time."""

_SUCCESS: Final = frozenset({200, 202})
_NOTHING_LEFT: Final = 204
_UNKNOWN_CODING: Final = 415
_NONE: Final[Headers] = MappingProxyType({})
_JSON: Final[Headers] = MappingProxyType({"Content-Type": "application/json"})
_ACCEPTED: Final = "application/json, application/octet-stream"

_log: Final = logging.getLogger("tensorkiln")


class Transport:
    """Sends requests to the service at the address that `locate` returns, always the same within one process.

    `credential` returns the API key or token of each request, or None; one IgnoredKeyWarning is given if the service
    ignores it. Safe for several threads and after a fork.
    """

    def __init__(
        self,
        runner: LoopRunner,
        locate: Callable[[], Address],
        timeout_s: float,
        credential: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._runner = runner
        self._locate = locate
        self._timeout_s = timeout_s
        self._credential = credential
        self._lock = RLock()  # garbage may be collected, and a client with it, while it is held
        self._opened: Connections | None = None
        self._closed = False
        self._takes_codings = True
        self._is_ignored: bool | None = None

    async def get(self, path: str, *, programs: int = 1, deadline: Deadline | None = None) -> bytes:
        """The body of a successful answer; any other status raises the error that the service describes.

        LimitExceededError when it is longer than `programs` can be. `deadline` applies if earlier than the timeout.
        """
        return await self._answer("GET", path, programs, self._soonest(deadline))

    async def post(
        self, path: str, body: bytes, headers: Headers = _NONE, *, programs: int = 1, deadline: Deadline | None = None
    ) -> bytes:
        """Like `get`, with a JSON body; 202 is success too. A large body to a URL is compressed."""
        return await self._answer("POST", path, programs, self._soonest(deadline), body, {**_JSON, **headers})

    async def delete(self, path: str, *, programs: int = 1, deadline: Deadline | None = None) -> bytes:
        """Like `get`; `deadline` replaces the transport's timeout."""
        return await self._answer("DELETE", path, programs, deadline or self._soonest(None))

    async def events(
        self, path: str, last: str = "", deadline: Deadline | None = None
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """The server-sent events after the id `last`, up to an event `done`; none if no event is left.

        A broken stream is reopened. UnavailableError when the service stays unreachable, and at the deadline.
        """
        endpoint = await self._endpoint()
        async with aclosing(self._runner.iterate(self._events(path, last, deadline, endpoint))) as events:
            async for event in events:
                yield event

    async def find(self) -> None:
        """Locate the service, starting it if necessary, without sending a request."""
        await self._endpoint()

    def require_open(self) -> None:
        """UnavailableError when the transport is closed."""
        if self._closed:
            raise _closed_error()

    async def close(self) -> None:
        """Close the connections; running and later calls raise `UnavailableError`."""
        opened = self._taken()
        if opened is not None and opened.is_of_process:
            await self._runner.in_loop(opened.close())

    def abandon(self) -> None:
        """Close the connections without waiting."""
        if (opened := self._taken()) is not None:
            opened.leave()

    def _taken(self) -> Connections | None:
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, None
        return opened

    async def _endpoint(self) -> Endpoint:
        self.require_open()
        return await self._runner.offload(self._located)

    def _located(self) -> Endpoint:
        address, credential = self._locate(), self._credential()
        load_http()
        return address, {} if credential is None else {"Authorization": f"Bearer {credential}"}

    def _connections(self, address: Address) -> Connections:
        from .connections import Connections

        # Connections of another loop or inherited through a fork are dropped, not closed.
        made = None
        if self._opened is None or not self._opened.is_here:
            # Created outside the lock: it is slow, and a child forked meanwhile must not inherit a held lock.
            made = Connections(address, {"User-Agent": f"tensorkiln/{sdk_version()}", "Accept": _ACCEPTED})
        with self._lock:
            self.require_open()
            if self._opened is None or not self._opened.is_here:
                self._opened, made = made or self._opened, None
            opened = self._opened
        if made is not None:
            made.leave()
        assert opened is not None, "it is made where there is none"
        return opened

    def _soonest(self, deadline: Deadline | None) -> Deadline:
        own = Deadline.after(self._timeout_s)
        return own if deadline is None or own.at < deadline.at else deadline

    async def _answer(
        self,
        method: str,
        path: str,
        programs: int,
        deadline: Deadline,
        body: bytes | None = None,
        headers: Headers = _NONE,
    ) -> bytes:
        endpoint = await self._endpoint()
        sent, coding = await self._packed(body, endpoint[0])
        most = _artifact_bytes() if path.startswith("/artifacts/") else programs * MAX_ANSWER_BYTES

        async def attempt(connections: Connections, who: Headers) -> bytes:
            nonlocal sent, coding
            with request_span(method, path) as trace:
                stated = {**headers, **who, **coding, **trace}
                async with (
                    connections.until(deadline),
                    connections.stream(method, path, stated, sent) as response,
                ):
                    answer = await _whole(response, most)
            self._note(response)
            # An answer without a length looks complete when another thread closes the connection.
            self.require_open()
            if response.status_code in _SUCCESS:
                return answer
            if coding and response.status_code == _UNKNOWN_CODING:
                self._takes_codings = False
                sent, coding = body, _NONE
                return await attempt(connections, who)
            raise refusal(response, answer)

        tried = self._tried(f"{method} {path}", endpoint, Retries(deadline), deadline, attempt)
        answer = await self._runner.in_loop(tried)
        self._warn()
        return answer

    def _note(self, response: httpx2.Response) -> None:
        """Remember, until `_warn`, that the service ignores the credential; the first time only."""
        if self._is_ignored is None and response.headers.get(IGNORED_HEADER) == IGNORED:
            self._is_ignored = True

    def _warn(self) -> None:
        # Not where the answer arrives: that may be another thread, whose stack has no line of the caller.
        if self._is_ignored:
            self._is_ignored = False
            warn_of_ignored_key(self._opened.address.url if self._opened is not None else "this address")

    async def _packed(self, body: bytes | None, address: Address) -> tuple[bytes | None, Headers]:
        """The body to send and its content-coding headers. No coding over a Unix socket, where it would only cost."""
        if body is None or len(body) < CODED_FROM_BYTES or address.socket is not None or not self._takes_codings:
            return body, _NONE
        return await self._runner.offload(lambda: coded(body))

    async def _tried(
        self,
        request: str,
        endpoint: Endpoint | None,
        retries: Retries,
        deadline: Deadline | None,
        attempt: Callable[[Connections, Headers], Coroutine[Any, Any, T]],
    ) -> T:
        """Run attempts, the first at `endpoint`, until one succeeds or fails for good."""
        import httpx2

        with self._explained(request, deadline):
            while True:
                address, who = endpoint or await self._endpoint()
                connections, endpoint = self._connections(address), None
                try:
                    return await attempt(connections, who)
                except (httpx2.HTTPError, Refusal) as error:
                    seconds = None if self._closed else retries.wait_s(error)
                    if seconds is None:
                        raise
                    why = str(error) or type(error).__name__
                await _pause(request, connections, seconds, why)

    async def _stream(
        self, path: str, last: str, deadline: Deadline | None, endpoint: Endpoint | None, stack: AsyncExitStack
    ) -> tuple[Connections, httpx2.Response]:
        """An open event stream, or a 204 answer when no event is left; `stack` closes it."""
        quiet_s = QUIET_S if deadline is None else CHECK_S
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}

        async def attempt(connections: Connections, who: Headers) -> tuple[Connections, httpx2.Response]:
            stream = connections.stream("GET", path, {**headers, **who}, quiet_s=quiet_s)
            async with connections.until(deadline):
                response = await stack.enter_async_context(stream)
            if response.status_code in (200, _NOTHING_LEFT):
                return connections, response
            async with connections.until(Deadline.after(quiet_s)):
                raise refusal(response, await _whole(response, MAX_ANSWER_BYTES))

        retries = Retries(deadline, STREAM_ATTEMPTS, may_be_slow=True)
        return await self._tried(f"GET {path}", endpoint, retries, deadline, attempt)

    async def _events(
        self, path: str, last: str, deadline: Deadline | None, endpoint: Endpoint | None
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        import httpx2

        request, empty = f"GET {path}", 0
        while empty < STREAM_ATTEMPTS:
            async with AsyncExitStack() as stack:
                connections, response = await self._stream(path, last, deadline, endpoint, stack)
                endpoint, is_silent = None, False
                if response.status_code == _NOTHING_LEFT:
                    return
                with self._explained(request, deadline):
                    read = connections.read(aiter(httpx2.EventSource(response)), deadline)
                    try:
                        async for event in await stack.enter_async_context(aclosing(read)):
                            empty, last = 0, event.id or last
                            yield event
                            if event.event == "done":
                                return
                            if deadline is not None and deadline.is_over:
                                break
                    except httpx2.ReadTimeout:
                        # With a deadline, the read timeout is shorter than the comment interval: not an error.
                        is_silent = deadline is not None
                    except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                        pass
            self.require_open()
            if deadline is not None and deadline.is_over:
                raise UnavailableError(f"{path} did not end within {deadline.seconds:g} s.")
            if is_silent:
                empty = 0
                continue
            with self._explained(request, deadline):
                await _pause(request, connections, backoff_s(empty), "the stream broke off")
            empty += 1
        raise UnavailableError(f"{self._name()} repeatedly closes the connection during {path}.")

    @contextmanager
    def _explained(self, request: str, deadline: Deadline | None) -> Generator[None]:
        """Convert errors of a request to TensorkilnErrors."""
        import httpx2

        try:
            yield
        except Refusal as refused:
            raise refused.error from None
        except TensorkilnError:
            raise
        except Exception as error:
            # Another thread may have closed the connections during the request, which can raise any error.
            if self._closed:
                raise _closed_error() from None
            if not isinstance(error, httpx2.HTTPError):
                raise
            if not isinstance(error, httpx2.TimeoutException):
                raise UnavailableError(f"{self._name()} cannot be reached for {request}: {error}.") from None
            within = f"within {deadline.seconds:g} s; give the client a longer timeout_s" if deadline else "in time"
            raise UnavailableError(f"{self._name()} did not answer {request} {within}.") from None

    def _name(self) -> str:
        address = self._opened.address if self._opened else None
        return f"The service at {address.url}" if address and address.socket is None else "The embedded service"


@cache
def load_http() -> None:
    """Import the HTTP modules, which cached answers do not need."""
    with uncollected():
        from . import connections as connections


def _closed_error() -> UnavailableError:
    return UnavailableError("This client is closed; make another one.")


def _artifact_bytes() -> int:
    # Imported late: it loads the program records, which sending alone does not need.
    from .bundle import MAX_ARTIFACT_BYTES

    return MAX_ARTIFACT_BYTES


async def _pause(request: str, connections: Connections, seconds: float, why: str) -> None:
    import asyncio

    _log.info("%s is sent again in %.2f s: %s", request, seconds, why)
    async with connections.until(None):
        await asyncio.sleep(seconds)


async def _whole(response: httpx2.Response, most: int) -> bytes:
    """The decoded body; LimitExceededError as soon as it exceeds `most` bytes."""
    received = bytearray()
    async for chunk in response.aiter_bytes():
        received += chunk
        if len(received) > most:
            request = response.request
            raise LimitExceededError(
                f"The answer to {request.method} {request.url.path} is longer than {most} bytes, the limit; "
                "ask for fewer targets at once, and see that a tensorkiln service answers.",
                limit="answer_bytes",
                maximum=most,
                actual=len(received),
            )
    return bytes(received)


def sdk_version() -> str:
    """The version of the installed distribution, "0" when the package runs from a folder."""
    try:
        return version("tensorkiln")
    except PackageNotFoundError:
        return "0"

"""HTTP between the client and its service: one deadline a call, retries where they are safe, errors by their code."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .coding import Payload
from .deadline import Deadline
from .errors import LimitExceededError, TensorkilnError, UnavailableError
from .patience import Patience, backoff_s
from .refusal import Refusal, refusal
from .tracing import request_span
from .wire import Address, Incoming, Line, Outgoing, Wire

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 256 << 20
"""Bytes of an answer for each program in it, decoded: as many as one compile may return."""
PATIENT_ATTEMPTS: Final = 40
"""As often a stream of events may break off: a job outlives a restart of its service, and so does the wait for it."""
CONNECT_TIMEOUT_S: Final = 5.0
QUIET_S: Final = 45.0
"""A stream of events that says nothing for so long is broken: a service sends a comment every 15 seconds."""
CHECK_S: Final = 10.0
"""How long a stream may say nothing when there is a deadline to look at, too; less than a comment takes to come."""

_SUCCESS: Final = frozenset({200, 202})
_NOTHING_LEFT: Final = 204
_UNKNOWN_CODING: Final = 415
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_JSON: Final[Mapping[str, str]] = MappingProxyType({"Content-Type": "application/json"})

_log: Final = logging.getLogger("tensorkiln")


class Transport:
    """Sends requests over `wire` to the service that `locate` finds, or starts, before each of them.

    `credential` gives the API key or token of each request; None sends none.

    Safe for several threads and after a fork. Within one process `locate` always names the same address.
    """

    def __init__(
        self,
        wire: Wire,
        locate: Callable[[], Address],
        timeout_s: float,
        credential: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._wire = wire
        self._locate = locate
        self._timeout_s = timeout_s
        self._credential = credential
        self._lock = threading.Lock()
        self._open: tuple[tuple[int, int], Address, Line] | None = None
        self._closed = False
        self._takes_codings = True

    async def get(self, path: str, *, programs: int = 1, deadline: Deadline | None = None) -> bytes:
        """The body of a 200 answer; any other raises the error that the service describes.

        `programs` is how many there may be in it. LimitExceededError when it is longer than they can be. `deadline` is
        one that comes before the time-out of the transport may be over.
        """
        return await self._call("GET", path, None, _NO_HEADERS, programs, self._soonest(deadline))

    async def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        programs: int = 1,
        deadline: Deadline | None = None,
    ) -> bytes:
        """Like `get`, with a JSON body; 202 is success too. A large one goes to a URL in a content coding."""
        return await self._call("POST", path, body, {**_JSON, **headers}, programs, self._soonest(deadline))

    async def delete(self, path: str, *, programs: int = 1, timeout_s: float | None = None) -> bytes:
        """Like `get`; `timeout_s` replaces that of the transport."""
        deadline = Deadline.after(self._timeout_s if timeout_s is None else timeout_s)
        return await self._call("DELETE", path, None, _NO_HEADERS, programs, deadline)

    async def events(
        self, path: str, last: str = "", deadline: Deadline | None = None
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """The server-sent events after the one with the id `last`, up to one called `done`; none where none is left.

        A stream that breaks off is opened again. UnavailableError when the service stays away, and at the deadline, if
        there is one: until then a stream may be slow to open, and say nothing.
        """
        import httpx2

        empty = 0
        while empty < PATIENT_ATTEMPTS:
            async with AsyncExitStack() as stack:
                with self._explained("GET", path, deadline):
                    incoming = await self._stream_opened(path, last, deadline, stack)
                    if incoming is None:
                        return
                    is_silent = False
                    try:
                        async for event in incoming.events:
                            empty, last = 0, event.id or last
                            yield event
                            if event.event == "done":
                                return
                            if deadline is not None and deadline.is_over:
                                break
                    except httpx2.ReadTimeout:
                        # Whoever looks at a deadline does so before a comment may come: it was not late.
                        is_silent = deadline is not None
                    except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                        pass
            if deadline is not None and deadline.is_over:
                raise UnavailableError(f"{path} did not come to its end within {deadline.seconds:g} s.")
            if is_silent:
                empty = 0
                continue
            await self._pause("GET", path, backoff_s(empty), "the stream broke off")
            empty += 1
        raise UnavailableError(f"{self._name()} breaks off {path} again and again.")

    async def _stream_opened(
        self, path: str, last: str, deadline: Deadline | None, stack: AsyncExitStack
    ) -> Incoming | None:
        """An answer whose events can be read; None where none is left to tell. `stack` closes it."""
        import httpx2

        stated = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}

        async def opened() -> Incoming | None:
            line, headers = await self._prepared(stated)
            left = QUIET_S if deadline is None else max(min(deadline.left_s, CHECK_S), 0.001)
            timeout = httpx2.Timeout(left, connect=min(CONNECT_TIMEOUT_S, left))
            request = Outgoing("GET", path, None, headers, timeout, deadline)
            incoming = await stack.enter_async_context(line.stream(request))
            if incoming.response.status_code == _NOTHING_LEFT:
                return None
            if incoming.response.status_code == 200:
                return incoming
            raise refusal(incoming.response, await _whole(incoming, Deadline.after(left), MAX_ANSWER_BYTES))

        patience = Patience(None if deadline is None else deadline.at, PATIENT_ATTEMPTS, may_be_slow=True)
        return await self._tried("GET", path, patience, opened)

    async def find(self) -> None:
        """See where the service is, which may mean to start one, apart from any request."""
        self.require_open()
        await self._wire.apart(self._locate)

    async def close(self) -> None:
        """Close the connections; a later call raises `UnavailableError`, and so does one that is under way."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, None
        if opened is not None and opened[0] == self._here():
            await opened[2].close()

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        programs: int,
        deadline: Deadline,
    ) -> bytes:
        payload = Payload(body)
        most = _artifact_bytes() if path.startswith("/artifacts/") else programs * MAX_ANSWER_BYTES
        with self._explained(method, path, deadline):
            return await self._tried(
                method, path, Patience(deadline.at), lambda: self._once(method, path, payload, headers, deadline, most)
            )

    def _soonest(self, deadline: Deadline | None) -> Deadline:
        own = Deadline.after(self._timeout_s)
        return own if deadline is None or own.at < deadline.at else deadline

    async def _tried(self, method: str, path: str, patience: Patience, once: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of the first attempt that does not fail, or fails for good."""
        import httpx2

        while True:
            try:
                return await once()
            except (httpx2.HTTPError, Refusal) as error:
                seconds = None if self._closed else patience.wait_s(error)
                if seconds is None:
                    raise
                why = str(error) or type(error).__name__
            await self._pause(method, path, seconds, why)

    async def _pause(self, method: str, path: str, seconds: float, why: str) -> None:
        _log.info("%s %s is sent again in %.2f s: %s", method, path, seconds, why)
        await self._wire.pause(seconds)

    async def _once(
        self, method: str, path: str, payload: Payload, headers: Mapping[str, str], deadline: Deadline, most: int
    ) -> bytes:
        import httpx2

        line, sent = await self._prepared(headers)
        body, coding = await self._packed(payload)
        left = max(deadline.left_s, 0.001)
        timeout = httpx2.Timeout(left, connect=min(CONNECT_TIMEOUT_S, left))
        with request_span(method, path) as trace:
            stated = {**sent, **coding, **trace}
            async with line.stream(Outgoing(method, path, body, stated, timeout, deadline)) as incoming:
                answer = await _whole(incoming, deadline, most)
        # An answer without a length ends where its connection was hung up.
        self.require_open()
        if incoming.response.status_code in _SUCCESS:
            return answer
        if coding and incoming.response.status_code == _UNKNOWN_CODING:
            self._takes_codings = False
            return await self._once(method, path, payload, headers, deadline, most)
        raise refusal(incoming.response, answer)

    async def _packed(self, payload: Payload) -> tuple[bytes | None, Mapping[str, str]]:
        """The body to send, and the headers that say how it is coded: over a socket file a coding only costs."""
        is_near = self._open is not None and self._open[1].socket is not None
        if is_near or not self._takes_codings or not payload.is_large:
            return payload.plain, _NO_HEADERS
        return await self._wire.apart(payload.coded)

    async def _prepared(self, headers: Mapping[str, str]) -> tuple[Line, Mapping[str, str]]:
        """The line to send on, and the headers to send. To find them may mean to start a service."""
        self.require_open()
        address, credential = await self._wire.apart(lambda: (self._locate(), self._credential()))
        with self._lock:
            self.require_open()
            # Connections inherited through a fork belong to the parent: they are dropped here, not shut down.
            if self._open is None or self._open[0] != self._here():
                common = {"User-Agent": f"tensorkiln/{sdk_version()}", "Accept": _ACCEPTED}
                self._open = (self._here(), address, self._wire.open(address, common))
            line = self._open[2]
        return line, headers if credential is None else {**headers, "Authorization": f"Bearer {credential}"}

    def require_open(self) -> None:
        """UnavailableError once it is closed."""
        if self._closed:
            raise _closed_error()

    def _here(self) -> tuple[int, int]:
        return os.getpid(), self._wire.place

    @contextmanager
    def _explained(self, method: str, path: str, deadline: Deadline | None) -> Generator[None]:
        """Have what goes wrong with a request be a TensorkilnError."""
        import httpx2

        try:
            yield
        except Refusal as refused:
            raise refused.error from None
        except TensorkilnError:
            raise
        except Exception as error:
            # Whoever has their connections closed by another thread finds them in any state.
            if self._closed:
                raise _closed_error() from None
            if not isinstance(error, httpx2.HTTPError):
                raise
            if not isinstance(error, httpx2.TimeoutException):
                raise UnavailableError(f"{self._name()} cannot be reached for {method} {path}: {error}.") from None
            within = "in time"
            if deadline is not None:
                within = f"within {deadline.seconds:g} s; give the client a longer timeout_s"
            raise UnavailableError(f"{self._name()} did not answer {method} {path} {within}.") from None

    def _name(self) -> str:
        address = self._open[1] if self._open else None
        return f"The service at {address.url}" if address and address.socket is None else "The embedded service"


def _closed_error() -> UnavailableError:
    return UnavailableError("This client is closed; make another one.")


_ACCEPTED: Final = "application/json, application/octet-stream"


def _artifact_bytes() -> int:
    # With it come the records of programs, which those who only send have no use for.
    from .bundle import MAX_ARTIFACT_BYTES

    return MAX_ARTIFACT_BYTES


async def _whole(incoming: Incoming, deadline: Deadline, most: int) -> bytes:
    """The decoded body; LimitExceededError as soon as there are more than `most` bytes of it."""
    request = incoming.response.request
    received = bytearray()
    async for chunk in incoming.chunks:
        received += chunk
        if len(received) > most:
            raise LimitExceededError(
                f"The answer to {request.method} {request.url.path} is longer than {most} bytes, the limit; "
                "ask for fewer targets at once, and see that a tensorkiln service answers.",
                limit="answer_bytes",
                maximum=most,
                actual=len(received),
            )
        if deadline.is_over:
            break
    # One without a length ends, too, where its connection is broken off for being late.
    if deadline.is_over:
        import httpx2

        raise httpx2.ReadTimeout("the answer is too slow", request=request)
    return bytes(received)


def sdk_version() -> str:
    """The version of the installed distribution, "0" when the package runs from a folder."""
    try:
        return version("tensorkiln")
    except PackageNotFoundError:
        return "0"

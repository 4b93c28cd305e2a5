"""HTTP between the client and its service: one deadline a call, retries where they are safe, errors by their code."""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Final

import httpx2

from .coding import Payload
from .errors import UnavailableError
from .refusal import Refusal, refusal
from .tracing import request_span
from .wire import BACKOFF_INITIAL_S, BACKOFF_MAX_S, Address, Decide, Incoming, Line, Outgoing, Wire

ATTEMPTS: Final = 5
PATIENT_ATTEMPTS: Final = 40
"""As often a stream of events may break off: a job outlives a restart of its service, and so does the wait for it."""
CONNECT_TIMEOUT_S: Final = 5.0
QUIET_S: Final = 45.0
"""A stream of events that says nothing for so long is broken: a service sends a comment every 15 seconds."""
CHECK_S: Final = 10.0
"""How long a stream may say nothing when there is a deadline to look at, too; less than a comment takes to come."""

# Every request is a function of its content (a compile is named by what is compiled, a job by the key that its request
# has), so sending one twice is harmless.
# A request that timed out is left out: the time it may take is spent.
_LOST: Final = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)
_BROKEN_OFF: Final = (httpx2.NetworkError, httpx2.RemoteProtocolError)
_SUCCESS: Final = frozenset({200, 202})
_UNKNOWN_CODING: Final = 415
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_JSON: Final[Mapping[str, str]] = MappingProxyType({"Content-Type": "application/json"})


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

    async def get(self, path: str) -> bytes:
        """The body of a 200 answer; any other raises the error that the service describes."""
        return await self._call("GET", path, None, _NO_HEADERS)

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] = _NO_HEADERS) -> bytes:
        """Like `get`, with a JSON body; 202 is success too. A large one goes to a URL in a content coding."""
        return await self._call("POST", path, body, {**_JSON, **headers})

    async def delete(self, path: str, *, timeout_s: float | None = None) -> bytes:
        """Like `get`; `timeout_s` replaces that of the transport."""
        return await self._call("DELETE", path, None, _NO_HEADERS, timeout_s)

    async def events(
        self, path: str, last: str = "", timeout_s: float | None = None
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """The server-sent events after the one with the id `last`, up to one called `done`.

        A stream that breaks off is opened again. UnavailableError when the service stays away, and after `timeout_s`
        seconds, if they are given: until then a stream may be slow to open, and say nothing.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        empty = 0
        while empty < PATIENT_ATTEMPTS:
            async with AsyncExitStack() as stack:
                with self._explained("GET", path, timeout_s):
                    incoming = await self._stream_opened(path, last, deadline, stack)
                    is_silent = False
                    try:
                        async for event in incoming.events:
                            empty, last = 0, event.id or last
                            yield event
                            if event.event == "done":
                                return
                    except httpx2.ReadTimeout:
                        # Whoever looks at a deadline does so before a comment may come: it was not late.
                        is_silent = deadline is not None
                    except _BROKEN_OFF:
                        pass
            if deadline is not None and time.monotonic() > deadline:
                raise UnavailableError(f"{path} did not come to its end within {timeout_s:g} s.")
            if is_silent:
                empty = 0
                continue
            await self._wire.pause(min(BACKOFF_INITIAL_S * 2**empty, BACKOFF_MAX_S) * random.uniform(0.5, 1.0))
            empty += 1
        raise UnavailableError(f"{self._name()} breaks off {path} again and again.")

    async def _stream_opened(self, path: str, last: str, deadline: float | None, stack: AsyncExitStack) -> Incoming:
        """An answer whose events can be read. `stack` closes it."""
        stated = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        async for attempt in self._wire.attempts(_patience(deadline, PATIENT_ATTEMPTS, may_be_slow=True)):
            with attempt:
                line, headers = await self._prepared(stated)
                left = QUIET_S if deadline is None else max(min(deadline - time.monotonic(), CHECK_S), 0.001)
                timeout = httpx2.Timeout(left, connect=min(CONNECT_TIMEOUT_S, left))
                incoming = await stack.enter_async_context(line.stream(Outgoing("GET", path, None, headers, timeout)))
                if incoming.response.status_code == 200:
                    return incoming
                raise refusal(incoming.response, await _whole(incoming, time.monotonic() + left))
        raise AssertionError("there is at least one attempt")

    async def find(self) -> None:
        """See where the service is, which may mean to start one, apart from any request."""
        self._require_open()
        await self._wire.apart(self._locate)

    async def close(self) -> None:
        """Close the connections; a later call raises `UnavailableError`."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, None
        if opened is not None and opened[0] == self._here():
            await opened[2].close()

    async def _call(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float | None = None
    ) -> bytes:
        seconds = self._timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + seconds
        payload = Payload(body)
        with self._explained(method, path, seconds):
            async for attempt in self._wire.attempts(_patience(deadline)):
                with attempt:
                    return await self._once(method, path, payload, headers, deadline)
        raise AssertionError("there is at least one attempt")

    async def _once(
        self, method: str, path: str, payload: Payload, headers: Mapping[str, str], deadline: float
    ) -> bytes:
        line, sent = await self._prepared(headers)
        body, coding = await self._packed(payload)
        left = max(deadline - time.monotonic(), 0.001)
        timeout = httpx2.Timeout(left, connect=min(CONNECT_TIMEOUT_S, left))
        with request_span(method, path) as trace:
            stated = {**sent, **coding, **trace}
            async with line.stream(Outgoing(method, path, body, stated, timeout)) as incoming:
                answer = await _whole(incoming, deadline)
        if incoming.response.status_code in _SUCCESS:
            return answer
        if coding and incoming.response.status_code == _UNKNOWN_CODING:
            self._takes_codings = False
            return await self._once(method, path, payload, headers, deadline)
        raise refusal(incoming.response, answer)

    async def _packed(self, payload: Payload) -> tuple[bytes | None, Mapping[str, str]]:
        """The body to send, and the headers that say how it is coded: over a socket file a coding only costs."""
        is_near = self._open is not None and self._open[1].socket is not None
        if is_near or not self._takes_codings or not payload.is_large:
            return payload.plain, _NO_HEADERS
        return await self._wire.apart(payload.coded)

    async def _prepared(self, headers: Mapping[str, str]) -> tuple[Line, Mapping[str, str]]:
        """The line to send on, and the headers to send. To find them may mean to start a service."""
        self._require_open()
        address, credential = await self._wire.apart(lambda: (self._locate(), self._credential()))
        with self._lock:
            # Connections inherited through a fork belong to the parent: they are dropped here, not shut down.
            if self._open is None or self._open[0] != self._here():
                common = {"User-Agent": f"tensorkiln/{sdk_version()}", "Accept": _ACCEPTED}
                self._open = (self._here(), address, self._wire.open(address, common))
            line = self._open[2]
        return line, headers if credential is None else {**headers, "Authorization": f"Bearer {credential}"}

    def _require_open(self) -> None:
        if self._closed:
            raise UnavailableError("This client is closed; make another one.")

    def _here(self) -> tuple[int, int]:
        return os.getpid(), self._wire.place

    @contextmanager
    def _explained(self, method: str, path: str, seconds: float | None) -> Generator[None]:
        """Have what goes wrong with a request be a TensorkilnError."""
        try:
            yield
        except Refusal as refused:
            raise refused.error from None
        except httpx2.TimeoutException:
            within = "in time" if seconds is None else f"within {seconds:g} s; give the client a longer timeout_s"
            raise UnavailableError(f"{self._name()} did not answer {method} {path} {within}.") from None
        except httpx2.HTTPError as error:
            raise UnavailableError(f"{self._name()} cannot be reached for {method} {path}: {error}.") from None

    def _name(self) -> str:
        address = self._open[1] if self._open else None
        return f"The service at {address.url}" if address and address.socket is None else "The embedded service"


_ACCEPTED: Final = "application/json, application/octet-stream"


def _patience(deadline: float | None, attempts: int = ATTEMPTS, *, may_be_slow: bool = False) -> Decide:
    """What is tried again: a lost connection, and an answer that asks for it, `attempts` times in all.

    A service that says when to come again is there and busy: it is asked until the deadline, and never earlier than it
    says. Those whom it told so at once do not come at once. One that `may_be_slow` to answer is asked until the
    deadline, too, and `attempts` times where there is none.
    """
    silent = 0

    def decide(error: Exception) -> bool | float:
        nonlocal silent
        left = math.inf if deadline is None else deadline - time.monotonic() - BACKOFF_MAX_S
        if isinstance(error, Refusal) and error.after_s is not None:
            return (
                error.after_s + random.uniform(0, BACKOFF_INITIAL_S) if error.again and error.after_s < left else False
            )
        is_slow = may_be_slow and isinstance(error, httpx2.ReadTimeout)
        silent += not is_slow or deadline is None
        again = is_slow or isinstance(error, _LOST) or (isinstance(error, Refusal) and error.again)
        return again and left > 0 and silent < attempts

    return decide


async def _whole(incoming: Incoming, deadline: float) -> bytes:
    received = bytearray()
    async for chunk in incoming.chunks:
        received += chunk
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("the answer is too slow", request=incoming.response.request)
    return bytes(received)


def sdk_version() -> str:
    """The version of the installed distribution, "0" when the package runs from a folder."""
    try:
        return version("tensorkiln")
    except PackageNotFoundError:
        return "0"

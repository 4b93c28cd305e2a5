"""HTTP between the client and its service: one deadline a call, retries where they are safe, errors by their code."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import httpx2
import stamina

from .errors import TensorkilnError, UnavailableError, error_from_problem

ATTEMPTS = 5
CONNECT_TIMEOUT_S = 5.0
BACKOFF_INITIAL_S = 0.1
BACKOFF_MAX_S = 1.0

# Every request is a function of its content (a compile is named by what is compiled), so sending one twice is harmless.
# A request that timed out is left out: the time it may take is spent.
_LOST = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)
_RETRIED_STATUS = frozenset({429, 502, 503, 504})
_MAX_QUOTED = 200


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, and the Unix socket that answers for it when there is one."""

    url: str
    socket: str | None = None


class _Refused(Exception):
    """An answer whose status asks to be tried again, and after how many seconds where it says so."""

    def __init__(self, error: TensorkilnError, after_s: float | None, *, again: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s
        self.again = again


class Transport:
    """Sends requests to the service that `locate` finds, or starts, before each of them.

    `credential` gives the API key or token of each request; None sends none.

    Safe for several threads and after a fork. Within one process `locate` always names the same address.
    """

    def __init__(
        self, locate: Callable[[], Address], timeout_s: float, credential: Callable[[], str | None] = lambda: None
    ) -> None:
        self._locate = locate
        self._timeout_s = timeout_s
        self._credential = credential
        self._lock = threading.Lock()
        self._open: tuple[int, Address, httpx2.Client] | None = None
        self._closed = False

    def get(self, path: str) -> bytes:
        """The body of a 200 answer; any other raises the error that the service describes."""
        return self._call("GET", path, None)

    def post(self, path: str, body: bytes) -> bytes:
        """Like `get`, with a JSON body."""
        return self._call("POST", path, body)

    def close(self) -> None:
        """Close the connections; a later call raises `UnavailableError`."""
        with self._lock:
            self._closed = True
            if self._open is not None and self._open[0] == os.getpid():
                self._open[2].close()
            self._open = None

    def _call(self, method: str, path: str, body: bytes | None) -> bytes:
        deadline = time.monotonic() + self._timeout_s

        def wait_before_next(error: Exception) -> bool | float:
            left = deadline - time.monotonic() - BACKOFF_MAX_S
            if isinstance(error, _Refused) and error.after_s is not None:
                return error.after_s if error.again and error.after_s < left else False
            again = isinstance(error, _LOST) or (isinstance(error, _Refused) and error.again)
            return again and left > 0

        try:
            for attempt in stamina.retry_context(
                on=wait_before_next,
                attempts=ATTEMPTS,
                timeout=None,
                wait_initial=BACKOFF_INITIAL_S,
                wait_max=BACKOFF_MAX_S,
                wait_jitter=BACKOFF_INITIAL_S,
            ):
                with attempt:
                    return self._once(method, path, body, deadline)
        except _Refused as refused:
            raise refused.error from None
        except httpx2.TimeoutException:
            raise UnavailableError(
                f"{self._name()} did not answer {method} {path} within {self._timeout_s:g} s; "
                "give the client a longer timeout_s."
            ) from None
        except httpx2.HTTPError as error:
            raise UnavailableError(f"{self._name()} cannot be reached for {method} {path}: {error}.") from None
        raise AssertionError("stamina yields at least one attempt")

    def _once(self, method: str, path: str, body: bytes | None, deadline: float) -> bytes:
        http = self._http()
        left = max(deadline - time.monotonic(), 0.001)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        credential = self._credential()
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        timeout = httpx2.Timeout(left, connect=min(CONNECT_TIMEOUT_S, left))
        with http.stream(method, path, content=body, headers=headers, timeout=timeout) as response:
            received = bytearray()
            for chunk in response.iter_bytes():
                received += chunk
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer is too slow", request=response.request)
        answer = bytes(received)
        if response.status_code == 200:
            return answer
        raise _refusal(response, answer)

    def _http(self) -> httpx2.Client:
        if self._closed:
            raise UnavailableError("This client is closed; make another one.")
        address = self._locate()
        with self._lock:
            # Connections inherited through a fork belong to the parent: they are dropped here, not shut down.
            if self._open is None or self._open[0] != os.getpid():
                self._open = (os.getpid(), address, _http_client(address))
            return self._open[2]

    def _name(self) -> str:
        address = self._open[1] if self._open else None
        return f"The service at {address.url}" if address and address.socket is None else "The embedded service"


def _http_client(address: Address) -> httpx2.Client:
    headers = {"User-Agent": f"tensorkiln/{sdk_version()}", "Accept": "application/json, application/octet-stream"}
    if address.socket is None:
        return httpx2.Client(base_url=address.url, headers=headers)
    # No TLS runs over a socket file: without this, building the client spends its time on loading certificates.
    local = httpx2.HTTPTransport(uds=address.socket, verify=False)
    return httpx2.Client(base_url=address.url, headers=headers, transport=local)


def sdk_version() -> str:
    """The version of the installed distribution, "0" when the package runs from a folder."""
    try:
        return version("tensorkiln")
    except PackageNotFoundError:
        return "0"


def _refusal(response: httpx2.Response, body: bytes) -> _Refused:
    problem = _problem(response, body)
    error = error_from_problem(problem) if problem else _unexplained(response, body)
    again = response.status_code in _RETRIED_STATUS and (problem is None or problem.get("retryable") is not False)
    return _Refused(error, _retry_after(response.headers.get("Retry-After")), again=again)


def _problem(response: httpx2.Response, body: bytes) -> Mapping[str, Any] | None:
    if response.headers.get("Content-Type", "").partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        problem = json.loads(body)
    except ValueError:
        return None
    return cast("Mapping[str, Any]", problem) if isinstance(problem, dict) and "code" in problem else None


def _unexplained(response: httpx2.Response, body: bytes) -> UnavailableError:
    text = " ".join(body.decode("utf-8", "replace").split())
    quoted = f": {text[:_MAX_QUOTED]}" if text else ""
    return UnavailableError(
        f"{response.request.url} answered {response.status_code}, not as a tensorkiln service does{quoted}",
        details={"status": response.status_code},
    )


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait by RFC 9110 section 10.2.3: a number, or a date to count from now."""
    if not header:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)

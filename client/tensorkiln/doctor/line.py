"""Plain requests to a service, which show details that a client hides: status, problem, clock."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

import httpx2

from ..embedded import embedded_service
from ..errors import UnavailableError
from ..proxy_environment import environment_errors
from ..settings import Settings
from ..transport import sdk_version

_TIMEOUT_S: Final = 15.0
_HALF_A_SECOND: Final = 0.5


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its JSON object (empty if it is not one), and how many seconds its clock is ahead, if known."""

    status: int
    body: Mapping[str, Any]
    content: bytes
    ahead_s: float | None

    @property
    def told(self) -> str:
        """The problem's detail as text."""
        detail = self.body.get("detail")
        return detail if detail and isinstance(detail, str) else f"it answered {self.status}"


class Line:
    """GET requests to one service."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def get(self, path: str) -> Answer:
        """The answer, with any status. UnavailableError when there is none."""
        begin = time.time()
        try:
            response = self._http.get(path)
        except httpx2.HTTPError as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from None
        middle = (begin + time.time()) / 2
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = None
        parsed = cast("Mapping[str, Any]", body) if isinstance(body, dict) else {}
        return Answer(response.status_code, parsed, response.content, _ahead(response.headers.get("Date"), middle))


@contextmanager
def opened(settings: Settings) -> Generator[Line]:
    """A line to the service of these settings; an embedded service is started. UnavailableError when that fails.

    RequestError for invalid proxy or certificate variables.
    """
    headers = {"User-Agent": f"tensorkiln/{sdk_version()} doctor"}
    timeout_s = min(settings.timeout_s, _TIMEOUT_S)
    if settings.url is None:
        address = embedded_service(settings.home, settings.startup_timeout_s).address()
        local = httpx2.HTTPTransport(uds=address.socket, verify=False)
        client = httpx2.Client(base_url=address.url, headers=headers, timeout=timeout_s, transport=local)
    else:
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        with environment_errors():
            client = httpx2.Client(base_url=settings.url, headers=headers, timeout=timeout_s)
    with client:
        yield Line(client)


def _ahead(date: str | None, now: float) -> float | None:
    if not date:
        return None
    try:
        # The header has whole seconds, so on average it is half a second old.
        return parsedate_to_datetime(date).timestamp() + _HALF_A_SECOND - now
    except (ValueError, OverflowError):
        return None


def told(value: object) -> str:
    """A scalar of an answer's JSON as text; lists and objects are not shown, because they may be of any depth."""
    return str(value) if value is None or isinstance(value, str | int | float) else "no text"

"""Deadlines of calls, and retries of requests: which failures are retried, and after how many seconds."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, cast

from .errors import TensorkilnError, UnavailableError, error_from_problem

if TYPE_CHECKING:
    import httpx2

_RETRIED_STATUS: Final = frozenset({429, 502, 503, 504})
_MAX_QUOTED: Final = 200


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline at the time `at` of `time.monotonic`, set from a duration of `seconds`."""

    seconds: float
    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """The deadline `seconds` from now."""
        return Deadline(seconds, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, 0 after the deadline."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.at


class Refusal(Exception):
    """An error answer. `again`: the request may be retried, after `after_s` seconds if stated."""

    def __init__(self, error: TensorkilnError, after_s: float | None, *, again: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s
        self.again = again


def refusal(response: httpx2.Response, body: bytes) -> Refusal:
    """Convert an unsuccessful answer to a Refusal."""
    problem = _problem(response, body)
    error = error_from_problem(problem) if problem else _unexplained(response, body)
    again = response.status_code in _RETRIED_STATUS and (problem is None or problem.get("retryable") is not False)
    return Refusal(error, _retry_after(response.headers.get("Retry-After")), again=again)


def _problem(response: httpx2.Response, body: bytes) -> Mapping[str, Any] | None:
    if response.headers.get("Content-Type", "").partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(problem, dict) or not isinstance(cast("Mapping[str, Any]", problem).get("code"), str):
        return None
    return cast("Mapping[str, Any]", problem)


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
    except (ValueError, OverflowError):
        return None
    moment = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


ATTEMPTS: Final = 5
BACKOFF_INITIAL_S: Final = 0.1
BACKOFF_MAX_S: Final = 1.0


def backoff_s(failures: int) -> float:
    """Seconds to wait after this many consecutive failures: exponential backoff with jitter."""
    return min(BACKOFF_INITIAL_S * 2**failures, BACKOFF_MAX_S) * random.uniform(0.5, 1.0)


class Retries:
    """The retries of one request: lost connections and retryable answers, at most `attempts` in total.

    An answer with Retry-After is retried until the deadline; so are read timeouts with `may_be_slow`, if there is one.
    """

    # Not by stamina: it takes 20 ms to import, and logs and counts by process-wide hooks, which are the program's.

    def __init__(self, deadline: Deadline | None, attempts: int = ATTEMPTS, *, may_be_slow: bool = False) -> None:
        self._deadline = deadline
        self._attempts = attempts
        self._may_be_slow = may_be_slow
        self._silent = 0

    def wait_s(self, error: httpx2.HTTPError | Refusal) -> float | None:
        """Seconds to wait after this error before the next attempt; None for no retry."""
        import httpx2

        # Every request is idempotent (a compile is keyed by its content, a job by its Idempotency-Key), so a retry is
        # harmless. A request that timed out is not retried: its time is spent.
        lost = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)
        left = math.inf if self._deadline is None else self._deadline.left_s - BACKOFF_MAX_S
        if isinstance(error, Refusal) and error.after_s is not None:
            is_early = error.again and error.after_s < left
            return error.after_s + random.uniform(0, BACKOFF_INITIAL_S) if is_early else None
        is_slow = self._may_be_slow and isinstance(error, httpx2.ReadTimeout)
        self._silent += not is_slow or self._deadline is None
        again = is_slow or isinstance(error, lost) or (isinstance(error, Refusal) and error.again)
        return backoff_s(self._silent) if again and left > 0 and self._silent < self._attempts else None

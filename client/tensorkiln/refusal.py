"""Error answers: the error, and whether the request may be retried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, cast

from .errors import TensorkilnError, UnavailableError, error_from_problem

if TYPE_CHECKING:
    import httpx2

_RETRIED_STATUS: Final = frozenset({429, 502, 503, 504})
_MAX_QUOTED: Final = 200


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

"""Retry policy of requests: which failures are retried, and after how many seconds."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

from .deadline import Deadline
from .refusal import Refusal

if TYPE_CHECKING:
    import httpx2

ATTEMPTS: Final = 5
BACKOFF_INITIAL_S: Final = 0.1
BACKOFF_MAX_S: Final = 1.0


def backoff_s(failures: int) -> float:
    """Seconds to wait after this many consecutive failures: exponential backoff with jitter."""
    return min(BACKOFF_INITIAL_S * 2**failures, BACKOFF_MAX_S) * random.uniform(0.5, 1.0)


class Retries:
    """The retries of one request: lost connections and retryable answers, at most `attempts` in total.

    An answer with Retry-After comes from a busy service: it is retried until the deadline, not earlier than stated,
    with jitter. With `may_be_slow`, read timeouts are retried until the deadline, or `attempts` times without one.
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

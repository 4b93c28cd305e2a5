"""When a request is sent again, and after how many seconds."""

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
    """Seconds to wait after so many failures in a row: more each time, and not the same for all who wait."""
    return min(BACKOFF_INITIAL_S * 2**failures, BACKOFF_MAX_S) * random.uniform(0.5, 1.0)


class Retries:
    """What of one request is tried again: a lost connection, and an answer that asks for it, `attempts` times in all.

    A service that says when to come again is there and busy: it is asked until the deadline, and never earlier than it
    says. Those whom it told so at once do not come at once. One that `may_be_slow` to answer is asked until the
    deadline, too, and `attempts` times where there is none.
    """

    # stamina takes 20 ms to import, and logs and counts by hooks of the whole process, which are not ours to set.

    def __init__(self, deadline: Deadline | None, attempts: int = ATTEMPTS, *, may_be_slow: bool = False) -> None:
        self._deadline = deadline
        self._attempts = attempts
        self._may_be_slow = may_be_slow
        self._silent = 0

    def wait_s(self, error: httpx2.HTTPError | Refusal) -> float | None:
        """Seconds from what failed so to the next attempt; None when there is to be none."""
        import httpx2

        # Every request is a function of its content (a compile is named by what is compiled, a job by the key that its
        # request has), so sending one twice is harmless.
        # A request that timed out is left out: the time it may take is spent.
        lost = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)
        left = math.inf if self._deadline is None else self._deadline.left_s - BACKOFF_MAX_S
        if isinstance(error, Refusal) and error.after_s is not None:
            is_early = error.again and error.after_s < left
            return error.after_s + random.uniform(0, BACKOFF_INITIAL_S) if is_early else None
        is_slow = self._may_be_slow and isinstance(error, httpx2.ReadTimeout)
        self._silent += not is_slow or self._deadline is None
        again = is_slow or isinstance(error, lost) or (isinstance(error, Refusal) and error.again)
        return backoff_s(self._silent) if again and left > 0 and self._silent < self._attempts else None

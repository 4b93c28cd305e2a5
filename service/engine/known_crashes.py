"""A short-lived memo of remembered crashes: a request that crashes the compiler is often sent again at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from service import clock
from tensorkiln.errors import CrashedError, error_from_problem

KNOWN_S: Final = 10.0
"""Seconds after which the store is read again: crashes expire there, and an operator may remove them."""
MAX_KNOWN: Final = 256


class KnownCrashes:
    """The last MAX_KNOWN requests that ended in a crash which the store remembers."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()

    @contextmanager
    def raising_known(self, request: str) -> Generator[None]:
        """Run a block that answers a request. CrashedError at once if the request has ended in a known crash."""
        self._raise(request)
        try:
            yield
        except CrashedError as error:
            if error.details.get("cached"):
                self._keep(request, error)
            raise

    def _keep(self, request: str, error: CrashedError) -> None:
        now = clock.monotonic()
        self._known.pop(request, None)
        self._known[request] = now, error.to_problem()
        for known, (since, _) in tuple(self._known.items()):
            if len(self._known) <= MAX_KNOWN and now - since < KNOWN_S:
                break
            del self._known[known]

    def _raise(self, request: str) -> None:
        since, problem = self._known.get(request, (0.0, None))
        if problem is None:
            return
        if clock.monotonic() - since < KNOWN_S:
            raise error_from_problem(problem)
        del self._known[request]

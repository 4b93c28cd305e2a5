"""Services and workers that are forked from a process that has loaded them."""

from __future__ import annotations

import atexit
from functools import cache

from service.sandbox.spawn import FIXED
from tests.forked import Forked


@cache
def forked_services() -> Forked:
    """Starts services and workers. There is one for each process that runs tests, and they end with it."""
    # Its fork servers are to have the hash seed of all others.
    forked = Forked("tests.service.loaded", **FIXED)
    atexit.register(forked.__exit__, None, None, None)
    return forked

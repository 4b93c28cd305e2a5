"""Time-outs: each is longer than the one inside it, so that the layer closest to a delay reports it.

    compile < sandbox < worker < answer < proxy < balancer < client

A proxy that gives up first answers with a page of its own, which says nothing about the compile. docs/operations.md has
those around the service.
"""

from __future__ import annotations

from typing import Final

OVERDUE_S: Final = 5.0
"""A fork server that misses a deadline by this many seconds is killed."""
ATTEMPTS: Final = 2
"""How often one attempt of a worker starts a compile that crashes."""
WORKER_S: Final = 15.0
"""Seconds of a worker beyond its compiles: to take an order, and to sign and store the result."""
ANSWER_S: Final = 5.0
"""Seconds for reading a request and writing its answer, beside queue and compile."""


def longest_answer_s(compile_s: float, queue_s: float) -> float:
    """The seconds of an answer whose compiles have this deadline and may wait `queue_s` in the queue."""
    return queue_s + ATTEMPTS * compile_s + WORKER_S + ANSWER_S

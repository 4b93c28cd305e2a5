"""Time-outs: each is longer than the one inside it, so that the layer closest to a delay reports it.

    compile < sandbox < worker < answer < proxy < balancer < client

A proxy that gives up first answers with a page of its own, which says nothing about the compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OVERDUE_S: Final = 5.0
"""A fork server that misses a deadline by this many seconds is killed."""
ATTEMPTS: Final = 2
"""How often one attempt of a worker starts a compile that crashes."""
WORKER_S: Final = 15.0
"""Seconds of a worker beyond its compiles: to take an order, and to sign and store the result."""
ANSWER_S: Final = 5.0
"""Seconds for reading a request and writing its answer, beside queue and compile."""
PROXY_S: Final = 5.0
BALANCER_S: Final = 5.0
CLIENT_S: Final = 10.0
ENDING_S: Final = 10.0
"""Seconds that a service may take to exit after the notice and the grace of its shutdown."""


def stop_s(notice_s: float, grace_s: float) -> float:
    """Seconds to wait after SIGTERM before killing a service, notice and grace included."""
    return notice_s + grace_s + ENDING_S


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, from the inside out. `answer_s` includes the time in the queue."""

    compile_s: float
    sandbox_s: float
    worker_s: float
    answer_s: float
    proxy_s: float
    balancer_s: float
    client_s: float

    @staticmethod
    def of(compile_s: float, queue_s: float) -> Timeouts:
        """The time-outs for compiles with this deadline that may wait `queue_s` in the queue."""
        worker = ATTEMPTS * compile_s + WORKER_S
        answer = queue_s + worker + ANSWER_S
        proxy = answer + PROXY_S
        balancer = proxy + BALANCER_S
        return Timeouts(compile_s, compile_s + OVERDUE_S, worker, answer, proxy, balancer, balancer + CLIENT_S)

    def lets_finish(self, grace_s: float) -> bool:
        """Whether a shutdown with this grace lets every earlier request finish: the longest answer fits."""
        return grace_s >= self.answer_s

"""The time-outs in and around a service, as docs/operations.md states them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from service.timeouts import ATTEMPTS, OVERDUE_S, WORKER_S, longest_answer_s

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
        answer = longest_answer_s(compile_s, queue_s)
        proxy = answer + PROXY_S
        balancer = proxy + BALANCER_S
        return Timeouts(compile_s, compile_s + OVERDUE_S, worker, answer, proxy, balancer, balancer + CLIENT_S)

    def lets_finish(self, grace_s: float) -> bool:
        """Whether a shutdown with this grace lets every earlier request finish: the longest answer fits."""
        return grace_s >= self.answer_s

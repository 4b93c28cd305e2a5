"""Time-outs: each is longer than the one inside it, so that whoever knows most about a delay tells of it.

    compile < sandbox < worker < answer < proxy < balancer < client

A proxy that gives up first answers with a page of its own, and nobody knows what became of the compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OVERDUE_S: Final = 5.0
"""A fork server that lets a deadline pass by this much does not do its work, and is killed."""
ATTEMPTS: Final = 2
"""A compile that crashes is begun so many times in one attempt of a worker."""
WORKER_S: Final = 15.0
"""What a worker may take beyond its compiles, to take an order, and to sign and store what it made."""
ANSWER_S: Final = 5.0
"""What reading a request and writing its answer may take beside queue and compile."""
PROXY_S: Final = 5.0
BALANCER_S: Final = 5.0
CLIENT_S: Final = 10.0
ENDING_S: Final = 10.0
"""What a service may take to end beyond the notice and the grace of its shutdown."""


def stop_s(notice_s: float, grace_s: float) -> float:
    """How long whoever stops a service has to wait before it kills it, notice and grace included."""
    return notice_s + grace_s + ENDING_S


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, from the inside out.

    `compile_s` is the deadline of one compile, `sandbox_s` when its fork server is given up, `worker_s` when the worker
    is, `answer_s` how long an answer is held back at most, time in the queue included. `proxy_s` and `balancer_s` are
    what stands before the service may wait for it, `client_s` what a client should.
    """

    compile_s: float
    sandbox_s: float
    worker_s: float
    answer_s: float
    proxy_s: float
    balancer_s: float
    client_s: float

    @staticmethod
    def of(compile_s: float, queue_s: float) -> Timeouts:
        """The time-outs over a deadline for compiles, where one may wait `queue_s` for its turn."""
        worker = ATTEMPTS * compile_s + WORKER_S
        answer = queue_s + worker + ANSWER_S
        proxy = answer + PROXY_S
        balancer = proxy + BALANCER_S
        return Timeouts(compile_s, compile_s + OVERDUE_S, worker, answer, proxy, balancer, balancer + CLIENT_S)

    def lets_finish(self, grace_s: float) -> bool:
        """Whether a shutdown with this grace answers all that was asked before it: the longest answer fits."""
        return grace_s >= self.answer_s

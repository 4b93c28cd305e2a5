"""The measured time of one schedule item in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..launch import LaunchDims
from .loops import LoopStep
from .steps import CallbackStep, Launch, TransferStep

StepKind = Literal["kernel", "memory_transfer", "host_callback", "loop"]


@dataclass(frozen=True, slots=True)
class Span:
    """The share of an item on one host thread or GPU stream (`lane`); `start_ns` counts from the start of the run."""

    lane: int
    start_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class ItemProfile:
    """The time of one item in nanoseconds; `launch` is a kernel's launch, `threads` the number of host threads.

    `estimate_ns` is the compiler's estimate for one thread; `flops` and `bytes` are the compiler's counts of operations
    and of bytes read and written; 0 where unknown. `start_ns` counts from the start of the run; `spans` are the shares
    of threads or of the stream.
    """

    item_id: int
    op: StepKind
    name: str
    ns: int
    launch: LaunchDims | None
    threads: int
    estimate_ns: int = 0
    start_ns: int = 0
    spans: tuple[Span, ...] = ()
    flops: int = 0
    bytes: int = 0


def item_profile(
    step: Launch | TransferStep | CallbackStep | LoopStep[Any], ns: int, start_ns: int = 0, spans: tuple[Span, ...] = ()
) -> ItemProfile:
    """The profile of `step`, which took `ns` nanoseconds from `start_ns` on."""
    if isinstance(step, Launch):
        return ItemProfile(
            step.item_id, "kernel", step.name, ns, step.launch, step.workers, start_ns=start_ns, spans=spans
        )
    return ItemProfile(step.item_id, _KINDS[type(step)], step.name, ns, None, 1, start_ns=start_ns, spans=spans)


_KINDS: dict[type, StepKind] = {
    TransferStep: "memory_transfer",
    CallbackStep: "host_callback",
    LoopStep: "loop",
}

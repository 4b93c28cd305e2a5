"""What one item of a program took in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..launch import LaunchDims
from .loops import LoopStep
from .steps import CallbackStep, Launch, TransferStep

StepKind = Literal["kernel", "memory_transfer", "host_callback", "loop"]


@dataclass(frozen=True, slots=True)
class Span:
    """What one thread of the host, or one stream of a GPU, did of an item: nanoseconds since the run began."""

    lane: int
    start_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class ItemProfile:
    """Nanoseconds of one item; `launch` is that of a kernel, `threads` how many threads of the host it ran on.

    `estimate_ns` is what the compiler estimated for one of them, `flops` its operations and `bytes` what it reads and
    writes, by the compiler's count; 0 where it has none. `start_ns` counts from the begin of the run, and `spans` are
    the threads or the stream that the item ran on.
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

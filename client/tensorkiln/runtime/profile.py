"""What the items of a program took in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..launch import LaunchDims
from .loops import LoopStep
from .steps import CallbackStep, Launch, TransferStep

StepKind = Literal["kernel", "memory_transfer", "host_callback", "loop"]


@dataclass(frozen=True, slots=True)
class ItemProfile:
    """Nanoseconds of one item; `launch` is that of a kernel, `threads` how many threads of the host it ran on.

    `estimate_ns` is what the compiler estimated for one of them; 0 where it did not.
    """

    item_id: int
    op: StepKind
    name: str
    ns: int
    launch: LaunchDims | None
    threads: int
    estimate_ns: int = 0


def item_profile(step: Launch | TransferStep | CallbackStep | LoopStep[Any], ns: int) -> ItemProfile:
    """The profile of `step`, which took `ns` nanoseconds."""
    if isinstance(step, Launch):
        return ItemProfile(step.item_id, "kernel", step.name, ns, step.launch, step.workers)
    return ItemProfile(step.item_id, _KINDS[type(step)], step.name, ns, None, 1)


_KINDS: dict[type, StepKind] = {
    TransferStep: "memory_transfer",
    CallbackStep: "host_callback",
    LoopStep: "loop",
}

"""What the items of a program took in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..launch import LaunchDims
from .steps import CallbackStep, KernelStep, Step

StepKind = Literal["kernel", "memory_transfer", "host_callback"]


@dataclass(frozen=True, slots=True)
class ItemProfile:
    """Wall-clock nanoseconds of one item; launch sizes and threads are those of a kernel, else None and 1."""

    item_id: int
    op: StepKind
    name: str
    ns: int
    launch: LaunchDims | None
    threads: int


def item_profile(step: Step, ns: int) -> ItemProfile:
    """The profile of `step`, which took `ns` nanoseconds."""
    if isinstance(step, KernelStep):
        return ItemProfile(step.item_id, "kernel", step.name, ns, step.launch, len(step.ranges))
    kind: StepKind = "host_callback" if isinstance(step, CallbackStep) else "memory_transfer"
    return ItemProfile(step.item_id, kind, step.name, ns, None, 1)

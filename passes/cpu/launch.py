"""The launch of a kernel on a CPU, from its schedule."""

from __future__ import annotations

from passes.launch import Launch
from tensorkiln import expr
from tensorkiln.schedule import KernelItem, work_groups


def launch_of(item: KernelItem) -> Launch:
    """At least one work-group, which does nothing when the kernel's tensors are empty."""
    return Launch(groups=expr.maximum(work_groups(item.context)[0], 1))

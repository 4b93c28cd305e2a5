"""The launch of a kernel on a GPU, from its schedule."""

from __future__ import annotations

from passes.launch import Launch
from passes.schedule.record import threads_of
from tensorkiln.schedule import KernelItem, work_groups

from .machine import VECTOR_BYTES
from .shared_memory import dynamic_bytes, static_bytes


def launch_of(item: KernelItem) -> Launch:
    """Work-groups along x only, which leaves room for 2^31 - 1 of them."""
    return Launch(
        groups=work_groups(item.context)[0],
        threads=threads_of(item),
        static_shared_bytes=static_bytes(item.shared),
        dynamic_shared_bytes=dynamic_bytes(item.shared),
        alignment=VECTOR_BYTES,
    )

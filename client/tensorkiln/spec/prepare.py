"""Checks of the schedule items that a program runs once, when its parameters are bound."""

from __future__ import annotations

from collections.abc import Sequence

from ..buffers import Binding, Buffer
from ..expr import Dim
from ..schedule import KernelItem, Schedule
from .checks import accesses
from .program_spec import ProgramSpec


def check_prepare(
    prepare: Sequence[int],
    inputs: Sequence[Binding],
    buffers: Sequence[Buffer],
    kernels: Sequence[ProgramSpec],
    schedule: Schedule,
) -> None:
    """ValueError when an item of `prepare` depends on a call, or shares written storage with an item outside it.

    Each item must be a kernel of static sizes that uses only parameters, constants, scratch and the storage that
    items of `prepare` write.
    """
    if list(prepare) != sorted(set(prepare)) or any(not 0 <= item < len(schedule.items) for item in prepare):
        raise ValueError(f"prepare names the items {list(prepare)}, which are not items of the schedule in order")
    first = frozenset(prepare)
    inside, outside = set[tuple[str, int]](), set[tuple[str, int]]()
    for item in schedule.items:
        written = {buffers[buffer].storage for buffer in accesses(item, kernels)[1]}
        (inside if item.item_id in first else outside).update(written)
    fixed = {buffers[binding.buffer].storage for binding in inputs if binding.is_parameter}
    fixed |= {buffer.storage for buffer in buffers if buffer.role == "constant"} | (inside - outside)
    for number in prepare:
        operation = schedule.items[number].operation
        if not isinstance(operation, KernelItem):
            raise ValueError(f"item {number} of prepare is not a kernel")
        kernel = kernels[operation.kernel_id]
        for buffer in map(buffers.__getitem__, kernel.buffers):
            if buffer.role != "scratch" and buffer.storage not in fixed:
                raise ValueError(f"item {number} of prepare uses buffer {buffer.id}, which is not there before a call")
            _require_static(number, (*buffer.shape, buffer.size_bytes, buffer.offset))
        _require_static(number, (*kernel.global_size, *(kernel.local_size or ()), kernel.dynamic_shared_bytes))


def _require_static(item: int, dims: Sequence[Dim]) -> None:
    if not all(isinstance(dim, int) for dim in dims):
        raise ValueError(f"item {item} of prepare has a size that depends on symbols")

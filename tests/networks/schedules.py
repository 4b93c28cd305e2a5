"""What holds of the schedule and the memory of every compiled program without symbols."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tensorkiln.buffers import Buffer
from tensorkiln.runtime.storage import Storage
from tensorkiln.schedule import KernelItem, Schedule
from tensorkiln.spec import CompiledProgram


def check_items(program: CompiledProgram, node_count: int) -> None:
    """Every axis runs on one level of the machine, and every value is read after the items that wrote it."""
    schedule = program.schedule
    writers: dict[int, list[int]] = {}
    for item in schedule.items:
        operation = item.operation
        assert isinstance(operation, KernelItem)
        assert sorted(operation.iter.mapping.all) == list(range(len(operation.iter.axes)))
        assert len(operation.iter.tiles) == len(operation.iter.axes)
        assert operation.ops
        assert all(0 <= op.node < node_count for op in operation.ops)
        assert program.kernels[operation.kernel_id].name == operation.kernel_name
        for info in operation.inputs:
            wrote = [writer for other in overlapping(program, info.buf_var) for writer in writers.get(other, ())]
            assert wrote or program.buffers[info.buf_var].role in ("input", "constant")
            assert set(wrote) <= before(schedule, item.item_id), f"{operation.kernel_name} reads too soon"
        for info in operation.outputs:
            writers.setdefault(info.buf_var, []).append(item.item_id)
    used = {item.operation.kernel_id for item in schedule.items if isinstance(item.operation, KernelItem)}
    assert used == set(range(len(program.kernels)))
    for binding in program.outputs:
        assert not writers.keys().isdisjoint(overlapping(program, binding.buffer))


def overlapping(program: CompiledProgram, buffer_id: int) -> list[int]:
    """The buffers that have bytes in common with one of them, itself included."""
    own = program.buffers[buffer_id]
    if own.alias_group is None:
        return [buffer_id]
    others = [buffer for buffer in program.buffers if buffer.alias_group == own.alias_group]
    return [other.id for other in others if begin(own) < end(other) and begin(other) < end(own)]


def before(schedule: Schedule, item_id: int) -> set[int]:
    """The items that an item waits for, directly or not."""
    found: set[int] = set()
    waiting = list(schedule.items[item_id].depends_on)
    while waiting:
        earlier = waiting.pop()
        if earlier not in found:
            found.add(earlier)
            waiting.extend(schedule.items[earlier].depends_on)
    return found


def check_edges(schedule: Schedule) -> None:
    """The edges and the items tell the same, and the critical path follows the edges."""
    items = range(len(schedule.items))
    assert {(edge.dep_from, edge.dep_to) for edge in schedule.dependencies} == {
        (earlier, item.item_id) for item in schedule.items for earlier in item.depends_on
    }
    assert all(earlier < item.item_id for item in schedule.items for earlier in item.depends_on)
    assert all(item.dependents for item in schedule.items if item.item_id != items[-1])
    assert len(schedule.analysis) == len(items)
    path = schedule.critical_path
    assert path
    assert all(earlier in schedule.items[later].depends_on for earlier, later in pairwise(path))


def size(buffer: Buffer) -> int:
    """Bytes of a buffer whose shape is static."""
    assert isinstance(buffer.size_bytes, int)
    return buffer.size_bytes


def begin(buffer: Buffer) -> int:
    """The first byte in its storage of a buffer whose shape is static."""
    assert isinstance(buffer.offset, int)
    return buffer.offset


def end(buffer: Buffer) -> int:
    """The byte behind the last."""
    return begin(buffer) + size(buffer)


def needed_at_once(storages: Iterable[Storage], item_count: int) -> int:
    """Bytes of the storages whose contents matter during one item, for the item with most: no plan can need less."""
    at = [0] * item_count
    for storage in storages:
        for item_id in range(storage.first, min(storage.last + 1, item_count)):
            at[item_id] += storage.extent({})
    return max(at)

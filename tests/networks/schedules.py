"""What holds of the schedule and the memory of every compiled program without symbols."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tensorkiln.buffers import Buffer
from tensorkiln.schedule import KernelItem, Schedule
from tensorkiln.spec import CompiledProgram


def check_items(program: CompiledProgram, node_count: int) -> None:
    """Every axis runs on one level of the machine, and every value is read after the item that wrote it."""
    schedule = program.schedule
    writer: dict[int, int] = {}
    for item in schedule.items:
        operation = item.operation
        assert isinstance(operation, KernelItem)
        assert sorted(operation.iter.mapping.all) == list(range(len(operation.iter.axes)))
        assert len(operation.iter.tiles) == len(operation.iter.axes)
        assert operation.ops
        assert all(0 <= op.node < node_count for op in operation.ops)
        assert program.kernels[operation.kernel_id].name == operation.kernel_name
        for info in operation.inputs:
            if program.buffers[info.buf_var].role not in ("input", "constant"):
                assert writer[info.buf_var] in before(schedule, item.item_id), f"{operation.kernel_name} reads too soon"
        writer |= {info.buf_var: item.item_id for info in operation.outputs}
    used = {item.operation.kernel_id for item in schedule.items if isinstance(item.operation, KernelItem)}
    assert used == set(range(len(program.kernels)))
    assert {binding.buffer for binding in program.outputs} <= writer.keys()


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


def needed_at_once(buffers: Iterable[Buffer], item_count: int) -> int:
    """Bytes of the buffers whose contents matter during one item, for the item with the most: no plan can need less."""
    at = [0] * item_count
    for buffer in buffers:
        for item_id in range(buffer.lifetime[0], buffer.lifetime[1] + 1):
            at[item_id] += size(buffer)
    return max(at)

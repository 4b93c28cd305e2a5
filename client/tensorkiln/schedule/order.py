"""Orders and sums over schedule items: dependents, topological order, critical path, run time, peak memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..expr import Dim, add, maximum
from .items import ItemAnalysis, ScheduleItem
from .operations import KernelItem, MemoryTransfer


class ScheduleError(ValueError):
    """The items do not form an executable schedule; the message names the items."""


def compute_dependents(depends_on: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """For each item the items that depend on it, in order of id. An id outside the items is ignored."""
    dependents: list[list[int]] = [[] for _ in depends_on]
    for item_id, predecessors in enumerate(depends_on):
        for predecessor in predecessors:
            if 0 <= predecessor < len(depends_on):
                dependents[predecessor].append(item_id)
    return tuple(tuple(ids) for ids in dependents)


def topological_order(depends_on: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Item ids so that every item follows its dependencies: in the order of becoming ready, ties by id.

    ScheduleError when a dependency refers to a missing item, or on a cycle of dependencies.
    """
    count = len(depends_on)
    for item_id, predecessors in enumerate(depends_on):
        for predecessor in predecessors:
            if not 0 <= predecessor < count:
                raise ScheduleError(f"item {item_id} depends on item {predecessor}, which is not in 0..{count - 1}")
    dependents = compute_dependents(depends_on)
    waiting = [len(predecessors) for predecessors in depends_on]
    ready = deque(item_id for item_id in range(count) if not waiting[item_id])
    order: list[int] = []
    while ready:
        item_id = ready.popleft()
        order.append(item_id)
        for dependent in dependents[item_id]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                ready.append(dependent)
    if len(order) != count:
        stuck = ", ".join(str(item_id) for item_id in range(count) if waiting[item_id])
        raise ScheduleError(f"items {stuck} are on a cycle of dependencies or behind one")
    return tuple(order)


def find_critical_path(depends_on: Sequence[Sequence[int]], analysis: Sequence[ItemAnalysis]) -> tuple[int, ...]:
    """The most expensive chain of items. An item costs `max(1, est_ns)`, or 1 without analysis.

    Ties go to the chain whose last item has the smallest id. Empty without items.
    """
    if not depends_on:
        return ()
    cost = _costs(len(depends_on), analysis)
    distance = list(cost)
    previous: list[int | None] = [None] * len(depends_on)
    dependents = compute_dependents(depends_on)
    for item_id in topological_order(depends_on):
        for dependent in dependents[item_id]:
            if distance[item_id] + cost[dependent] > distance[dependent]:
                distance[dependent] = distance[item_id] + cost[dependent]
                previous[dependent] = item_id
    path: list[int] = []
    item: int | None = distance.index(max(distance))
    while item is not None:
        path.append(item)
        item = previous[item]
    return tuple(reversed(path))


def sum_estimated_runtime_ns(critical_path: Sequence[int], analysis: Sequence[ItemAnalysis]) -> int:
    """The sum of `max(1, est_ns)` over the critical path, in nanoseconds."""
    estimates = {entry.item_id: max(1, entry.est_ns) for entry in analysis}
    return sum(estimates.get(item_id, 1) for item_id in critical_path)


def estimate_peak_memory(items: Sequence[ScheduleItem]) -> Dim:
    """The most bytes that one item touches: a kernel's inputs and outputs, or a transfer's flat size."""
    sizes = {_bytes_of(item) for item in items}
    return maximum(0, *sizes)


def _costs(count: int, analysis: Sequence[ItemAnalysis]) -> list[int]:
    cost = [1] * count
    for entry in analysis:
        if entry.item_id < count:
            cost[entry.item_id] = max(1, entry.est_ns)
    return cost


def _bytes_of(item: ScheduleItem) -> Dim:
    operation = item.operation
    if isinstance(operation, KernelItem):
        return add(*(buffer.alloc.size_bytes for buffer in (*operation.inputs, *operation.outputs)))
    if isinstance(operation, MemoryTransfer):
        return operation.size_bytes
    return 0

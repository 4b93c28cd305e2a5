"""The dependencies between steps: read after write, write after write, and write after read of the same bytes.

Every order of the steps that respects these edges computes the same results, whichever buffers share storage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tensorkiln import expr
from tensorkiln.buffers import Buffer
from tensorkiln.expr import Dim
from tensorkiln.schedule import Dependency

from .program_plan import Step

Ranges = Mapping[str, tuple[int, int]]


_Access = tuple[int, Buffer]
"""A step, and a buffer that it reads or writes."""


@dataclass(slots=True)
class _Storage:
    """The accesses to the current contents of a storage, without those to bytes that have been overwritten since."""

    reads: list[_Access] = field(default_factory=list[_Access])
    writes: list[_Access] = field(default_factory=list[_Access])


def dependencies(steps: Sequence[Step], buffers: Sequence[Buffer], ranges: Ranges) -> list[Dependency]:
    """The edges between steps, by their numbers, each pair once and in order.

    A data edge leads from the last writer of a buffer to its reader and names what is read. A control edge leads to a
    step that overwrites what another has read or written, and names what it writes; it is left out if two other edges
    imply it. `ranges` bound the symbols: buffers of one storage that are disjoint for all their values are independent.
    """
    storages: dict[tuple[str, int], _Storage] = defaultdict(_Storage)
    before: list[frozenset[int]] = []
    edges: list[Dependency] = []
    for number, step in enumerate(steps):
        reads, writes = ([buffers[buffer] for buffer in ids] for ids in (step.reads, step.writes))
        data: dict[int, list[int]] = {}
        for buffer in reads:
            for earlier in _overlapping(storages[buffer.storage].writes, buffer, ranges):
                data.setdefault(earlier, []).append(buffer.id)
        control: dict[int, list[int]] = {}
        for buffer in writes:
            storage = storages[buffer.storage]
            for earlier in _overlapping((*storage.reads, *storage.writes), buffer, ranges):
                if earlier not in data:
                    control.setdefault(earlier, []).append(buffer.id)
        direct = data.keys() | control.keys()
        implied = frozenset[int]().union(*(before[earlier] for earlier in direct)) if control else frozenset[int]()
        edges += [_edge(earlier, number, ids, "data") for earlier, ids in sorted(data.items())]
        ordered = ((earlier, ids) for earlier, ids in sorted(control.items()) if earlier not in implied)
        edges += [_edge(earlier, number, ids, "control") for earlier, ids in ordered]
        before.append(frozenset(direct))
        for buffer in reads:
            storages[buffer.storage].reads.append((number, buffer))
        for buffer in writes:
            storage = storages[buffer.storage]
            storage.reads = [access for access in storage.reads if not _covers(buffer, access[1], ranges)]
            storage.writes = [access for access in storage.writes if not _covers(buffer, access[1], ranges)]
            storage.writes.append((number, buffer))
    return edges


def _edge(earlier: int, later: int, buffers: Iterable[int], kind: Literal["data", "control"]) -> Dependency:
    return Dependency(dep_from=earlier, dep_to=later, dep_vars=tuple(dict.fromkeys(buffers)), kind=kind)


def _overlapping(accesses: Iterable[_Access], buffer: Buffer, ranges: Ranges) -> Iterator[int]:
    """The steps of the accesses that have bytes in common with a buffer."""
    return (step for step, other in accesses if not _are_disjoint(other, buffer, ranges))


def _are_disjoint(one: Buffer, other: Buffer, ranges: Ranges) -> bool:
    """Whether two buffers of one storage have no byte in common, for all values of the symbols."""
    if one.size_bytes == 0 or other.size_bytes == 0:
        return True
    gaps = (expr.sub(after.offset, _end(before)) for before, after in ((one, other), (other, one)))
    return not _are_alike(one, other) and any(expr.is_nonnegative(gap, ranges) for gap in gaps)


def _are_alike(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers of one storage have the same bytes."""
    return one.offset == other.offset and one.size_bytes == other.size_bytes


def _covers(one: Buffer, other: Buffer, ranges: Ranges) -> bool:
    """Whether all bytes of `other` are in `one`, a buffer of the same storage, for all values of the symbols."""
    if _are_alike(one, other):
        return True
    begins, ends = expr.sub(other.offset, one.offset), expr.sub(_end(one), _end(other))
    return expr.is_nonnegative(begins, ranges) and expr.is_nonnegative(ends, ranges)


def _end(buffer: Buffer) -> Dim:
    return expr.add(buffer.offset, buffer.size_bytes)

"""Decide which buffers share storage: parts of a larger buffer, and results computed in place of a dead operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tensorkiln.buffers import DEFAULT_ALIGNMENT
from tensorkiln.expr import Dim, Expr

from .prepare import kept_buffers
from .program_plan import ProgramPlan

Pairs = Sequence[tuple[int, int]]
"""`(written, read)` buffers of a step, as positions in its `writes` and `reads`."""


@dataclass(slots=True)
class _Storage:
    """Buffers that share one storage of `size` bytes.

    `needed_until` is the last step that uses it, or the number of steps if it outlives them all. `is_ours` means that
    the program may overwrite it.
    """

    members: list[int]
    size: Dim
    needed_until: int
    is_ours: bool


def share_storage(plan: ProgramPlan, reusable: Mapping[int, Pairs]) -> None:
    """Decide which buffers of a closed plan share storage: set the `reuses` of steps and the groups and offsets of
    buffers.

    `reusable` maps a step to the results that its kernel can compute in place of an operand. It does so if this is the
    last use of all buffers in the storage. Inputs, constants, results and prepared values are never overwritten.
    """
    storages = _storages(plan)
    for number, pairs in sorted(reusable.items()):
        step = plan.steps[number]
        reuses: list[tuple[int, int]] = []
        for written, read in ((step.writes[write], step.reads[read]) for write, read in pairs):
            new, old = storages[written], storages[read]
            is_taken = any(written == other or old is storages[other] for other, _ in reuses)
            is_whole = new.size == plan.buffers[written].size_bytes and old.size == plan.buffers[read].size_bytes
            is_free = old.is_ours and old.needed_until <= number
            if is_taken or not is_whole or not is_free or sum(storages[each] is old for each in step.reads) > 1:
                continue
            reuses.append((written, read))
            merged = _Storage([*old.members, *new.members], old.size, new.needed_until, is_ours=True)
            storages |= dict.fromkeys(merged.members, merged)
        plan.steps[number] = replace(step, reuses=tuple(reuses))
    _mark(plan, storages)


def _storages(plan: ProgramPlan) -> dict[int, _Storage]:
    """The storage of every buffer before any in-place reuse."""
    kept = kept_buffers(plan) | frozenset(plan.results)
    shared: dict[int, _Storage] = {}
    storages: dict[int, _Storage] = {}
    for buffer in plan.buffers:
        place = plan.places.get(buffer.id)
        storage = _Storage([], buffer.size_bytes if place is None else place.size, 0, is_ours=True)
        if place is not None:
            storage = shared.setdefault(place.storage, storage)
        storage.members.append(buffer.id)
        until = len(plan.steps) if buffer.id in kept else buffer.lifetime[1]
        storage.needed_until = max(storage.needed_until, until)
        storage.is_ours &= buffer.role in ("temp", "output")
        storages[buffer.id] = storage
    return storages


def _mark(plan: ProgramPlan, storages: Mapping[int, _Storage]) -> None:
    groups: dict[int, int] = {}
    for buffer in plan.buffers:
        storage = storages[buffer.id]
        if len(storage.members) == 1:
            continue
        offset = plan.places[buffer.id].offset if buffer.id in plan.places else 0
        terms = [coefficient for _, coefficient in offset.terms] if isinstance(offset, Expr) else [offset]
        update = {
            "alias_group": groups.setdefault(id(storage), len(groups)),
            "offset": offset,
            # The storage has the default alignment.
            "alignment": gcd(DEFAULT_ALIGNMENT, *terms),
        }
        plan.buffers[buffer.id] = buffer.model_copy(update=update)

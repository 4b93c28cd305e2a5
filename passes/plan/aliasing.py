"""Decide which buffers share storage: parts of a larger buffer, and results computed in place of a dead operand.

An argument that a loop carries may be overwritten, by the result that replaces it and by values on the way to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
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
    the program may overwrite it. `carries` is the position of the carried argument in it.
    """

    members: list[int]
    size: Dim
    needed_until: int
    is_ours: bool
    carries: int | None = None


def share_storage(plan: ProgramPlan, reusable: Mapping[int, Pairs], carried: Set[int] = frozenset()) -> None:
    """Decide which buffers of a closed plan share storage: set the `reuses` of steps and the groups and offsets of
    buffers.

    `reusable` maps a step to the results that its kernel can compute in place of an operand. It does so if this is the
    last use of all buffers in the storage. Inputs, constants, results and prepared values are never overwritten, except
    the arguments at the positions `carried` if the result at the same position ends in their place.
    """
    while True:
        storages, reuses = _shared(plan, reusable, carried)
        overwritten = {storages[read].carries for pairs in reuses.values() for _, read in pairs} - {None}
        # A value on the way was computed in place, and the result was not.
        vain = {at for at in overwritten if at is not None and storages[plan.results[at]].carries != at}
        if not vain:
            break
        carried = carried - vain
    for number, pairs in reuses.items():
        plan.steps[number] = replace(plan.steps[number], reuses=tuple(pairs))
    _mark(plan, storages)


def _shared(
    plan: ProgramPlan, reusable: Mapping[int, Pairs], carried: Set[int]
) -> tuple[dict[int, _Storage], dict[int, list[tuple[int, int]]]]:
    """The storage of every buffer, and the `reuses` of the steps."""
    storages = _storages(plan, carried)
    reuses: dict[int, list[tuple[int, int]]] = {}
    for number, pairs in sorted(reusable.items()):
        step, found = plan.steps[number], reuses.setdefault(number, [])
        for written, read in ((step.writes[write], step.reads[read]) for write, read in pairs):
            new, old = storages[written], storages[read]
            is_taken = any(written == other or old is storages[other] for other, _ in found)
            is_whole = new.size == plan.buffers[written].size_bytes and old.size == plan.buffers[read].size_bytes
            is_free = old.is_ours and old.needed_until <= number
            # The contents of an argument are those of one result after the call.
            is_its_result = old.carries is None or all(
                at == old.carries for at, result in enumerate(plan.results) if result in new.members
            )
            if is_taken or not is_whole or not is_free or not is_its_result:
                continue
            if sum(storages[each] is old for each in step.reads) > 1:
                continue
            found.append((written, read))
            members = [*old.members, *new.members]
            merged = _Storage(members, old.size, new.needed_until, is_ours=True, carries=old.carries)
            storages |= dict.fromkeys(merged.members, merged)
    return storages, reuses


def _storages(plan: ProgramPlan, carried: Set[int]) -> dict[int, _Storage]:
    """The storage of every buffer before any in-place reuse."""
    kept = kept_buffers(plan) | frozenset(plan.results)
    replaced = {plan.arguments[at]: at for at in carried}
    last_use = {plan.storage_of(each): 0 for each in replaced}
    for number, step in enumerate(plan.steps):
        last_use |= {key: number for each in step.reads if (key := plan.storage_of(each)) in last_use}
    shared: dict[int, _Storage] = {}
    storages: dict[int, _Storage] = {}
    for buffer in plan.buffers:
        place = plan.places.get(buffer.id)
        storage = _Storage([], buffer.size_bytes if place is None else place.size, 0, is_ours=True)
        if place is not None:
            storage = shared.setdefault(place.storage, storage)
        storage.members.append(buffer.id)
        # An argument is live throughout, but a carried one is needed until its last use only.
        until = len(plan.steps) if buffer.id in kept else last_use.get(plan.storage_of(buffer.id), buffer.lifetime[1])
        storage.needed_until = max(storage.needed_until, until)
        storage.is_ours &= buffer.role in ("temp", "output") or buffer.id in replaced
        storage.carries = replaced.get(buffer.id, storage.carries)
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

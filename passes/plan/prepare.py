"""Decide which steps run once when parameters are bound, and which of their buffers are kept."""

from __future__ import annotations

from dataclasses import replace

from .program_plan import ProgramPlan, Step


def settle_prepared(plan: ProgramPlan) -> None:
    """Clear `is_prepared` on steps of a closed plan that depend on a call.

    A prepared step reads parameters, constants and results of other prepared steps. No other step writes to its
    storages, and each of these storages is covered by one buffer, which is kept.
    """
    places, given = plan.places, plan.parameters | {each.id for each in plan.buffers if each.role == "constant"}
    whole = {
        plan.storage_of(buffer.id)
        for buffer in plan.buffers
        if buffer.id not in places or (places[buffer.id].offset == 0 and places[buffer.id].size == buffer.size_bytes)
    }
    while True:
        ours = {plan.storage_of(buffer) for step in plan.steps if step.is_prepared for buffer in _written(step)}
        others = {plan.storage_of(buffer) for step in plan.steps if not step.is_prepared for buffer in _written(step)}
        fixed = (ours - others) & whole
        vain = [
            number
            for number, step in enumerate(plan.steps)
            if step.is_prepared
            and not (
                all(plan.storage_of(buffer) in fixed for buffer in _written(step))
                and all(buffer in given or plan.storage_of(buffer) in fixed for buffer in step.reads)
            )
        ]
        if not vain:
            return
        for number in vain:
            plan.steps[number] = replace(plan.steps[number], is_prepared=False)


def kept_buffers(plan: ProgramPlan) -> frozenset[int]:
    """The buffers in storages that prepared steps write and other steps read."""
    ours = {plan.storage_of(buffer) for step in plan.steps if step.is_prepared for buffer in step.writes}
    read = {plan.storage_of(buffer) for step in plan.steps if not step.is_prepared for buffer in step.reads}
    return frozenset(buffer.id for buffer in plan.buffers if plan.storage_of(buffer.id) in ours & read)


def _written(step: Step) -> tuple[int, ...]:
    return (*step.writes, *step.scratch)

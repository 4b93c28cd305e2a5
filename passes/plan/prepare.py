"""Which steps a program runs when its parameters are bound, and what of their results stays."""

from __future__ import annotations

from dataclasses import replace

from .program_plan import ProgramPlan, Step


def settle_prepared(plan: ProgramPlan) -> None:
    """Have only those steps of a closed plan be prepared that need nothing of a call.

    They read parameters, constants and what others of them write, and no other step writes into a storage of theirs.
    One buffer is all of such a storage: that stays.
    """
    whole = _covered(plan)
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
                and all(_is_fixed(buffer, plan) or plan.storage_of(buffer) in fixed for buffer in step.reads)
            )
        ]
        if not vain:
            return
        for number in vain:
            plan.steps[number] = replace(plan.steps[number], is_prepared=False)


def kept_buffers(plan: ProgramPlan) -> frozenset[int]:
    """The buffers in storages that prepared steps write and others read."""
    ours = {plan.storage_of(buffer) for step in plan.steps if step.is_prepared for buffer in step.writes}
    read = {plan.storage_of(buffer) for step in plan.steps if not step.is_prepared for buffer in step.reads}
    return frozenset(buffer.id for buffer in plan.buffers if plan.storage_of(buffer.id) in ours & read)


def _written(step: Step) -> tuple[int, ...]:
    return (*step.writes, *step.scratch)


def _is_fixed(buffer: int, plan: ProgramPlan) -> bool:
    return buffer in plan.parameters or plan.buffers[buffer].role == "constant"


def _covered(plan: ProgramPlan) -> set[tuple[str, int]]:
    """The storages of which one buffer is all."""
    places = plan.places
    return {
        plan.storage_of(buffer.id)
        for buffer in plan.buffers
        if buffer.id not in places or (places[buffer.id].offset == 0 and places[buffer.id].size == buffer.size_bytes)
    }

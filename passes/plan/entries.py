"""Assign each step the function that runs it: one function per kernel and kind of buffers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from .program_plan import ProgramPlan, Step


def name_entries(plan: ProgramPlan) -> None:
    """Set the `entry` of every kernel step of a closed plan: the kernel's name, with a number if it has several
    entries.
    """
    names: dict[Hashable, str] = {}
    counts: dict[str, int] = {}
    for number, step in enumerate(plan.steps):
        if step.kernel is None:
            continue
        kind = step.kernel, _kind(step, plan)
        if kind not in names:
            count = counts.get(step.kernel, 0)
            names[kind] = f"{step.kernel}_{count}" if count else step.kernel
            counts[step.kernel] = count + 1
        plan.steps[number] = replace(step, entry=names[kind])


def _kind(step: Step, plan: ProgramPlan) -> Hashable:
    """The properties of buffers that a compiled function depends on: slots, dtypes, shapes and alignments."""
    given = (plan.buffers[number] for number in step.arguments)
    return step.slots, tuple((buffer.dtype, buffer.shape, buffer.alignment) for buffer in given)

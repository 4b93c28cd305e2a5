"""The phases of a program: all items at each call, or prepared items once and the rest at each call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..buffers import Binding
from ..spec import CompiledProgram
from ..spec.checks import accesses
from ..spec.constraint import WireConstraint


@dataclass(frozen=True)
class Phase:
    """Some items of the schedule in order of execution, with their inputs, outputs and constraints.

    A value prepared by another phase is an input with a negative var, since the graph has no var for it.
    """

    items: tuple[int, ...]
    inputs: tuple[Binding, ...]
    outputs: tuple[Binding, ...]
    constraints: tuple[WireConstraint, ...]

    def reads(self, program: CompiledProgram) -> frozenset[int]:
        """The vars of the inputs that an item uses or that are returned unchanged."""
        used = {buffer for item in self.items for buffer in accesses(program.schedule.items[item], program.kernels)[0]}
        used |= {binding.buffer for binding in self.outputs}
        storages = {program.buffers[buffer].storage for buffer in used}
        return frozenset(binding.var for binding in self.inputs if program.buffers[binding.buffer].storage in storages)


def whole(program: CompiledProgram) -> Phase:
    """The phase that runs everything at each call."""
    return Phase(program.schedule.execution_order, program.inputs, program.outputs, program.constraints)


def split(program: CompiledProgram) -> tuple[Phase, Phase] | None:
    """The prepare phase and the call phase; None when nothing is prepared."""
    if not program.prepare:
        return None
    order, first = program.schedule.execution_order, frozenset(program.prepare)
    at_once, at_call = (tuple(item for item in order if (item in first) is is_first) for is_first in (True, False))
    parameters = tuple(binding for binding in program.inputs if binding.is_parameter)
    kept = _kept(program, at_once, at_call)
    prepare = Phase(at_once, parameters, kept, ())
    needed = prepare.reads(program)
    return (
        replace(prepare, inputs=tuple(binding for binding in parameters if binding.var in needed)),
        Phase(at_call, (*program.inputs, *kept), program.outputs, program.constraints),
    )


def _kept(program: CompiledProgram, at_once: tuple[int, ...], at_call: tuple[int, ...]) -> tuple[Binding, ...]:
    """A binding for each storage that is prepared and used later, to its largest buffer, which covers all of it."""
    items, kernels = program.schedule.items, program.kernels
    written = {program.buffers[buffer].storage for item in at_once for buffer in accesses(items[item], kernels)[1]}
    used = {buffer for item in at_call for buffer in accesses(items[item], kernels)[0]}
    used |= {binding.buffer for binding in program.outputs}
    kept = {program.buffers[buffer].storage for buffer in used} & written
    largest: dict[tuple[str, int], Binding] = {}
    sizes: dict[tuple[str, int], int] = {}
    for buffer in program.buffers:
        key, size = buffer.storage, buffer.size_bytes
        if key in kept and isinstance(size, int) and size > sizes.get(key, -1):
            sizes[key] = size
            largest[key] = Binding(var=-1 - buffer.id, buffer=buffer.id, dtype=buffer.dtype, shape=buffer.shape)
    return tuple(largest.values())

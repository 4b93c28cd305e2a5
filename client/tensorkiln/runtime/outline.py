"""Facts derived from a program's record alone, without its code, memory, symbols or inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..custom import CustomOp, lookup
from ..errors import DeviceError
from ..schedule import HostCallback, KernelItem, MemoryTransfer
from ..spec import CompiledProgram
from .phases import Phase, split, whole
from .storage import Storage, resolve_storages


@dataclass(frozen=True)
class Outline:
    """`storage_of` is by buffer id, `var_of_input` by the buffer id of an input; both cover the buffers of `phase`."""

    program: CompiledProgram
    phase: Phase
    callbacks: Mapping[str, CustomOp]
    storages: tuple[Storage, ...]
    storage_of: Mapping[int, int]
    var_of_input: Mapping[int, int]


def outline_of(program: CompiledProgram, phase: Phase) -> Outline:
    """The outline of a phase. UnsupportedGraphError when the program calls an operation that is not registered."""
    storages = resolve_storages(program, phase)
    return Outline(
        program=program,
        phase=phase,
        callbacks=_callbacks(program, phase),
        storages=storages,
        storage_of={buffer.id: key for key, storage in enumerate(storages) for buffer in storage.members},
        var_of_input={binding.buffer: binding.var for binding in phase.inputs},
    )


@dataclass(frozen=True)
class Outlines:
    """The outline of the whole program, and of its phases if it has any: `prepare` once, then `call` at each call."""

    whole: Outline
    prepare: Outline | None = None
    call: Outline | None = None

    def phases(self, bound: Collection[int]) -> tuple[Outline, Outline] | None:
        """The phases `prepare` and `call`, if the `bound` vars include all inputs of `prepare`; else None."""
        if self.prepare is None or self.call is None:
            return None
        needed = {binding.var for binding in self.prepare.phase.inputs}
        return (self.prepare, self.call) if needed <= set(bound) else None


def outlines_of(program: CompiledProgram) -> Outlines:
    """All outlines of a program. Errors as for `outline_of`."""
    everything, phases = outline_of(program, whole(program)), split(program)
    if phases is None:
        return Outlines(everything)
    return Outlines(everything, *(outline_of(program, phase) for phase in phases))


def _callbacks(program: CompiledProgram, phase: Phase) -> dict[str, CustomOp]:
    operations = [program.schedule.items[item].operation for item in phase.items]
    callbacks = [operation for operation in operations if isinstance(operation, HostCallback)]
    for callback in callbacks:
        if len(callback.output_vars) != 1:
            raise DeviceError(f"the callback {callback.callback_name} has {len(callback.output_vars)} results, not 1")
    return {callback.callback_name: lookup(callback.callback_name) for callback in callbacks}


def require_inputs_kept(program: CompiledProgram) -> None:
    """DeviceError when the program, which no other one runs, overwrites the arrays of its caller."""
    if program.in_place:
        raise DeviceError(
            f"the program replaces its inputs {list(program.in_place)} in place, which only the body of a loop may; "
            "compile it again"
        )


def require_devices(program: CompiledProgram, *, kernels: str, transfers: frozenset[str], alignment: int) -> None:
    """DeviceError when an item needs a device, or a buffer an alignment in bytes, that the runtime does not have.

    `kernels` is the kind of device that kernels run on, `transfers` the kinds that a transfer may use.
    """
    for item in program.schedule.items:
        operation = item.operation
        devices: tuple[str, ...] = ()
        offered = transfers
        if isinstance(operation, KernelItem):
            devices, offered = (operation.context.device,), frozenset({kernels})
        elif isinstance(operation, MemoryTransfer):
            devices = (operation.src_device, operation.dst_device)
        for device in devices:
            if device.split(":")[0].upper() not in offered:
                has = " and ".join(sorted(offered))
                raise DeviceError(f"item {item.item_id} needs the device {device}; this runtime has {has} only")
    for buffer in program.buffers:
        if buffer.alignment > alignment and buffer.role != "input":
            raise DeviceError(f"buffer {buffer.id} needs an alignment of {buffer.alignment}; here it is {alignment}")

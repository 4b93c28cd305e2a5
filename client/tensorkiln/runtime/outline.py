"""What follows from the record of a program alone: neither code nor memory, neither symbols nor inputs of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..custom import CustomOp, lookup
from ..errors import DeviceError
from ..schedule import HostCallback, KernelItem, MemoryTransfer
from ..spec import CompiledProgram
from .storage import Storage, resolve_storages


@dataclass(frozen=True)
class Outline:
    """`storage_of` is by buffer id, `var_of_input` by the id of an input's buffer."""

    program: CompiledProgram
    callbacks: Mapping[str, CustomOp]
    storages: tuple[Storage, ...]
    storage_of: Mapping[int, int]
    var_of_input: Mapping[int, int]


def outline_of(program: CompiledProgram) -> Outline:
    """The outline. UnsupportedGraphError when the program calls an operation that is not registered."""
    storages = resolve_storages(program)
    return Outline(
        program=program,
        callbacks=_callbacks(program),
        storages=storages,
        storage_of={buffer.id: key for key, storage in enumerate(storages) for buffer in storage.members},
        var_of_input={binding.buffer: binding.var for binding in program.inputs},
    )


def _callbacks(program: CompiledProgram) -> dict[str, CustomOp]:
    operations = [item.operation for item in program.schedule.items]
    callbacks = [operation for operation in operations if isinstance(operation, HostCallback)]
    for callback in callbacks:
        if len(callback.output_vars) != 1:
            raise DeviceError(f"the callback {callback.callback_name} has {len(callback.output_vars)} results, not 1")
    return {callback.callback_name: lookup(callback.callback_name) for callback in callbacks}


def require_devices(program: CompiledProgram, *, kernels: str, transfers: frozenset[str], alignment: int) -> None:
    """DeviceError when an item needs a device, or a buffer an alignment in bytes, that the runtime does not have.

    `kernels` is the kind of device that kernels run on, `transfers` those that a transfer may name.
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

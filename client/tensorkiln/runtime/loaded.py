"""A program whose code and constants are in memory: what does not depend on the symbols or the inputs of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..buffers import Buffer
from ..custom import CustomOp, lookup
from ..errors import DeviceError
from ..expr import evaluate
from ..schedule import HostCallback, KernelItem, MemoryTransfer
from ..spec import CompiledProgram
from .cpu import CpuKernel, load_kernels, verified
from .memory import ALIGNMENT, Array, fresh_array
from .storage import Storage, resolve_storages


@dataclass(frozen=True)
class LoadedProgram:
    """`storage_of` and `constants` are by buffer id, `var_of_input` by the id of an input's buffer."""

    program: CompiledProgram
    kernels: tuple[CpuKernel, ...]
    callbacks: Mapping[str, CustomOp]
    storages: tuple[Storage, ...]
    storage_of: Mapping[int, int]
    constants: Mapping[int, Array]
    var_of_input: Mapping[int, int]


def load_program(program: CompiledProgram, artifacts: Callable[[str], bytes]) -> LoadedProgram:
    """`program` with its code linked and its constants loaded.

    DeviceError when this machine cannot run it, UnavailableError when an artifact is corrupt, UnsupportedGraphError
    when it calls an operation that is not registered.
    """
    _require_host_devices(program)
    kernels = load_kernels(program, artifacts)
    storages = resolve_storages(program)
    return LoadedProgram(
        program=program,
        kernels=kernels,
        callbacks=_callbacks(program),
        storages=storages,
        storage_of={buffer.id: key for key, storage in enumerate(storages) for buffer in storage.members},
        constants={
            buffer.id: _constant(buffer, verified(artifacts, buffer.artifact))
            for buffer in program.buffers
            if buffer.artifact is not None
        },
        var_of_input={binding.buffer: binding.var for binding in program.inputs},
    )


def _constant(buffer: Buffer, content: bytes) -> Array:
    shape = tuple(evaluate(dim, {}) for dim in buffer.shape)
    array, _, _ = fresh_array(shape, buffer.dtype.numpy, len(content))
    if array.nbytes != len(content):
        raise DeviceError(f"constant {buffer.id} has {array.nbytes} bytes and its artifact {len(content)}")
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8)
    array.flags.writeable = False
    return array


def _callbacks(program: CompiledProgram) -> dict[str, CustomOp]:
    operations = [item.operation for item in program.schedule.items]
    callbacks = [operation for operation in operations if isinstance(operation, HostCallback)]
    for callback in callbacks:
        if len(callback.output_vars) != 1:
            raise DeviceError(f"the callback {callback.callback_name} has {len(callback.output_vars)} results, not 1")
    return {callback.callback_name: lookup(callback.callback_name) for callback in callbacks}


def _require_host_devices(program: CompiledProgram) -> None:
    """DeviceError when an item needs a device other than the host, or memory of a larger alignment than it has here."""
    for item in program.schedule.items:
        operation = item.operation
        devices: tuple[str, ...] = ()
        if isinstance(operation, KernelItem):
            devices = (operation.context.device,)
        elif isinstance(operation, MemoryTransfer):
            devices = (operation.src_device, operation.dst_device)
        for device in devices:
            if device.split(":")[0].upper() != "CPU":
                raise DeviceError(f"item {item.item_id} needs the device {device}; this runtime has the host only")
    for buffer in program.buffers:
        if buffer.alignment > ALIGNMENT and buffer.role != "input":
            raise DeviceError(f"buffer {buffer.id} needs an alignment of {buffer.alignment}; here it is {ALIGNMENT}")

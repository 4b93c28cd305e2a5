"""Kernels on the host processor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ..errors import CallInputError, DeviceError
from ..spec import CompiledProgram, CompiledSpec, ProgramSpec
from ..spec.abi import KNOWN_ABIS
from ..target import Target, missing_features
from ..usable_features import usable_features
from .artifact import verified
from .engine import LoadedObject, binding, load_object

KernelFunction = Callable[[int, int, int, int], None]
"""`entry(buffers, values, first, last)`: addresses of the two arrays, then the half-open range of work-groups."""

CPU_ABI = 1
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class CpuKernel:
    """A loaded kernel with its code at `address`. Stateless: several threads may run it on different buffers."""

    name: str
    buf_count: int
    var_names: tuple[str, ...]
    address: int
    function: KernelFunction
    code: LoadedObject

    def execute(
        self,
        buffers: Sequence[int],
        vals: Sequence[int],
        global_size: tuple[int, int, int] | None = None,
        local_size: tuple[int, int, int] | None = None,
    ) -> None:
        """Run every work-group on the calling thread.

        `buffers` are addresses in call order and `vals` 64-bit values in the order of `var_names`. Without a
        `global_size` there is one work-group; a CPU has no `local_size`. CallInputError when a count is wrong.
        """
        if len(buffers) != self.buf_count:
            raise CallInputError(f"kernel {self.name} takes {self.buf_count} buffers, got {len(buffers)}")
        if len(vals) != len(self.var_names):
            raise CallInputError(f"kernel {self.name} takes {len(self.var_names)} values, got {len(vals)}")
        pointers = (ctypes.c_void_p * len(buffers))(*buffers)
        values = (ctypes.c_int64 * len(vals))(*vals)
        groups = 1 if global_size is None else global_size[0]
        self.function(ctypes.addressof(pointers), ctypes.addressof(values), 0, groups)


def require_host(target: Target) -> None:
    """DeviceError when this machine lacks an ISA feature that `target` names."""
    missing = missing_features(target, usable_features(binding().get_host_cpu_features()))
    if missing:
        raise DeviceError(
            f"this processor lacks {', '.join(missing)}, which the program was compiled for; compile it for cpu:native",
            details={"missing_features": list(missing)},
        )


def load_kernels(program: CompiledProgram, artifacts: Callable[[str], bytes]) -> tuple[CpuKernel, ...]:
    """Load the kernels of `program`.

    DeviceError when this machine cannot run them; UnavailableError when an artifact is corrupt.
    """
    if program.abi not in KNOWN_ABIS:
        known = ", ".join(map(str, KNOWN_ABIS))
        raise DeviceError(f"the program has the ABI {program.abi} and this runtime knows {known}; update tensorkiln")
    require_host(program.target)
    objects: dict[str, LoadedObject] = {}
    return tuple(_load(kernel, artifacts, objects) for kernel in program.kernels)


def _load(kernel: ProgramSpec, artifacts: Callable[[str], bytes], objects: dict[str, LoadedObject]) -> CpuKernel:
    if kernel.artifact is None:
        raise DeviceError(f"kernel {kernel.name} has no object code; compile the program for a cpu target")
    if kernel.abi != CPU_ABI:
        raise DeviceError(f"kernel {kernel.name} has the ABI {kernel.abi} and this runtime knows {CPU_ABI}")
    if kernel.artifact not in objects:
        objects[kernel.artifact] = load_object(verified(artifacts, kernel.artifact), kernel.artifact)
    code = objects[kernel.artifact]
    return _kernel(code, kernel.entry or kernel.name, kernel.name, kernel.buf_count, kernel.var_names)


def cpu_runtime(compiled: CompiledSpec) -> CpuKernel:
    """The runtime factory of the CPU: a kernel from its object code. DeviceError when it cannot be loaded."""
    if not compiled.bytes:
        raise DeviceError(f"kernel {compiled.name} has no object code; the CPU runtime loads objects, not source")
    code = load_object(compiled.bytes, sha256(compiled.bytes).hexdigest())
    return _kernel(code, compiled.name, compiled.name, compiled.buf_count, compiled.var_names)


def _kernel(code: LoadedObject, entry: str, name: str, buf_count: int, var_names: tuple[str, ...]) -> CpuKernel:
    address = code.address_of(entry)
    return CpuKernel(name, buf_count, var_names, address, _PROTOTYPE(address), code)

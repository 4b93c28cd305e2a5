"""A program for the host whose code and constants are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..buffers import Buffer
from ..expr import evaluate
from ..spec import CompiledProgram
from .artifact import constant_bytes
from .cpu import CpuKernel, load_kernels
from .memory import ALIGNMENT, Array, fresh_array
from .outline import Outlines, outlines_of, require_devices


@dataclass(frozen=True)
class LoadedProgram:
    """`constants` are by buffer id; `inner` are the programs of its loops."""

    program: CompiledProgram
    outlines: Outlines
    kernels: tuple[CpuKernel, ...]
    constants: Mapping[int, Array]
    inner: tuple[LoadedProgram, ...] = ()


def load_program(program: CompiledProgram, artifacts: Callable[[str], bytes]) -> LoadedProgram:
    """Link the code of `program` and load its constants.

    DeviceError when this machine cannot run it, UnavailableError when an artifact is corrupt, UnsupportedGraphError
    when it calls an operation that is not registered.
    """
    require_devices(program, kernels="CPU", transfers=frozenset({"CPU"}), alignment=ALIGNMENT)
    return LoadedProgram(
        program=program,
        kernels=load_kernels(program, artifacts),
        outlines=outlines_of(program),
        constants={
            buffer.id: _constant(buffer, constant_bytes(buffer, artifacts))
            for buffer in program.buffers
            if buffer.role == "constant"
        },
        inner=tuple(load_program(inner, artifacts) for inner in program.inner),
    )


def _constant(buffer: Buffer, content: bytes) -> Array:
    shape = tuple(evaluate(dim, {}) for dim in buffer.shape)
    array, _, _ = fresh_array(shape, buffer.dtype.numpy, len(content))
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8)
    array.flags.writeable = False
    return array

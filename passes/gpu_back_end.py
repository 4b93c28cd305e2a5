"""The compiler's half behind the kiln dialect for GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from tensorkiln.options import CompileOptions
from tensorkiln.target import Target

from .back_end import BackEnd
from .codegen import cubin, nvptx
from .codegen.assembly import Assembly
from .gpu.launch import launch_of
from .gpu.machine import machine_of
from .gpu.pipeline import gpu_pipeline


def gpu_back_end_of(target: Target, options: CompileOptions, measured: Mapping[str, float]) -> BackEnd:
    """The back end of a `cuda` target; `measured` as for `back_end_of`."""

    def emit(llvm_ir: str) -> bytes:
        return nvptx.emit(llvm_ir, target).encode()

    def assemble(ptx: bytes) -> Assembly:
        return cubin.assemble(ptx.decode(), nvptx.architecture_of(target).name)

    machine = machine_of(target, fast_math=options.fast_math)
    pipeline = gpu_pipeline(machine, options, measured)
    return BackEnd(pipeline, emit, launch_of, machine, _listing, assemble if options.cubin else None)


def _listing(llvm_ir: str, ptx: bytes) -> str:
    """PTX is text already."""
    return ptx.decode()

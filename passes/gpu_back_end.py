"""The back end for GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorkiln.options import CompileOptions
from tensorkiln.schedule import KernelItem, work_groups
from tensorkiln.target import Target

from .back_end import BackEnd, Launch
from .codegen import cubin, nvptx
from .codegen.assembly import Assembly
from .codegen.debug_lines import marked, numbers_of_assembly
from .gpu.machine import VECTOR_BYTES, machine_of
from .gpu.pipeline import gpu_pipeline
from .gpu.shared_memory import dynamic_bytes, static_bytes
from .schedule.record import threads_of


def gpu_back_end_of(target: Target, options: CompileOptions, measured: Mapping[str, float]) -> BackEnd:
    """The back end of a `cuda` target; `measured` as for `back_end_of`."""

    def emit(llvm_ir: str) -> bytes:
        return nvptx.emit(llvm_ir, target).encode()

    def assemble(ptx: bytes) -> Assembly:
        return cubin.assemble(ptx.decode(), nvptx.architecture_of(target).name)

    def listing(llvm_ir: str, codes: Sequence[bytes], numbers: Sequence[int]) -> tuple[str, list[int]]:
        # PTX is already text. Only line numbers, and parts, need another compile.
        text = codes[0].decode() if len(codes) == 1 else nvptx.emit(llvm_ir, target)
        return text, numbers_of_assembly(text, nvptx.emit(marked(llvm_ir, numbers), target))

    machine = machine_of(target, fast_math=options.fast_math)
    pipeline = gpu_pipeline(machine, options, measured)
    return BackEnd(pipeline, emit, _launch_of, machine, listing, assemble=assemble if options.cubin else None)


def _launch_of(item: KernelItem) -> Launch:
    """Work-groups along x only, where up to 2^31 - 1 are possible."""
    return Launch(
        groups=work_groups(item.context)[0],
        threads=threads_of(item),
        static_shared_bytes=static_bytes(item.shared),
        dynamic_shared_bytes=dynamic_bytes(item.shared),
        alignment=VECTOR_BYTES,
    )

"""The compiler's two halves behind the kiln dialect, by the kind of the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.options import CompileOptions
from tensorkiln.schedule import KernelItem
from tensorkiln.target import Target

from .codegen import cubin, nvptx, object_code
from .codegen.assembly import Assembly
from .cpu.launch import launch_of as cpu_launch
from .cpu.machine import machine_of as cpu_machine_of
from .cpu.pipeline import cpu_pipeline
from .gpu.launch import launch_of as gpu_launch
from .gpu.machine import machine_of as gpu_machine_of
from .gpu.pipeline import gpu_pipeline
from .launch import Launch
from .schedule.cost import Machine
from .stage import Stage
from .strategy import UNMEASURED


@dataclass(frozen=True, slots=True)
class BackEnd:
    """`pipeline` takes a module from the kiln dialect to the LLVM dialect, `emit` LLVM IR text to an artifact.

    `launch` says how a kernel with this schedule is started, `machine` what is known of what runs it. `assemble` makes
    of an artifact what a device runs as it is; None where that was not asked for, or the artifact is that already.
    """

    pipeline: tuple[Stage, ...]
    emit: Callable[[str], bytes]
    launch: Callable[[KernelItem], Launch]
    machine: Machine
    assemble: Callable[[bytes], Assembly] | None = None


def back_end_of(target: Target, options: CompileOptions, measured: Mapping[str, float] = UNMEASURED) -> BackEnd:
    """The back end of a target, whose picks go by what was `measured` of candidates, where that is known.

    UnsupportedGraphError when there is none for its kind.
    """
    match target.kind:
        case "cpu":
            cpu = cpu_machine_of(target, fast_math=options.fast_math)
            return BackEnd(
                cpu_pipeline(cpu, options, measured), partial(object_code.emit, target=target), cpu_launch, cpu
            )
        case "cuda":

            def emit(llvm_ir: str) -> bytes:
                return nvptx.emit(llvm_ir, target).encode()

            def assemble(ptx: bytes) -> Assembly:
                return cubin.assemble(ptx.decode(), nvptx.architecture_of(target).name)

            gpu = gpu_machine_of(target, fast_math=options.fast_math)
            pipeline = gpu_pipeline(gpu, options, measured)
            return BackEnd(pipeline, emit, gpu_launch, gpu, assemble if options.cubin else None)
        case _:
            raise UnsupportedGraphError(
                f"this compiler has no code generator for {target.kind} targets; use a cpu or cuda target",
                details={"target": target.kind},
            )

"""The compiler's two halves behind the kiln dialect, by the kind of the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.options import CompileOptions
from tensorkiln.schedule import KernelItem
from tensorkiln.target import Target

from .codegen import nvptx, object_code
from .cpu.launch import launch_of as cpu_launch
from .cpu.pipeline import cpu_pipeline
from .gpu.launch import launch_of as gpu_launch
from .gpu.pipeline import gpu_pipeline
from .launch import Launch
from .stage import Stage


@dataclass(frozen=True, slots=True)
class BackEnd:
    """`pipeline` takes a module from the kiln dialect to the LLVM dialect, `emit` LLVM IR text to an artifact.

    `launch` says how a kernel with this schedule is started.
    """

    pipeline: tuple[Stage, ...]
    emit: Callable[[str], bytes]
    launch: Callable[[KernelItem], Launch]


def back_end_of(target: Target, options: CompileOptions) -> BackEnd:
    """The back end of a target. UnsupportedGraphError when there is none for its kind."""
    match target.kind:
        case "cpu":
            return BackEnd(cpu_pipeline(target, options), partial(object_code.emit, target=target), cpu_launch)
        case "cuda":

            def emit(llvm_ir: str) -> bytes:
                return nvptx.emit(llvm_ir, target).encode()

            return BackEnd(gpu_pipeline(target, options), emit, gpu_launch)
        case _:
            raise UnsupportedGraphError(
                f"this compiler has no code generator for {target.kind} targets; use a cpu or cuda target",
                details={"target": target.kind},
            )

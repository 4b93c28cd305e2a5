"""The back ends of the compiler, by kind of target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tensorkiln import expr
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.options import CompileOptions
from tensorkiln.schedule import KernelItem, work_groups
from tensorkiln.target import Target

from .back_end import BackEnd, Launch
from .codegen import object_code
from .codegen.debug_lines import marked, numbers_of_assembly
from .cpu.machine import machine_of
from .cpu.pipeline import cpu_pipeline
from .strategy import UNMEASURED


def back_end_of(target: Target, options: CompileOptions, measured: Mapping[str, float] = UNMEASURED) -> BackEnd:
    """The back end of a target; where `measured` has times of candidates, picks use them.

    Raises UnsupportedGraphError for a kind of target without a code generator.
    """
    match target.kind:
        case "cpu":
            machine = machine_of(target, fast_math=options.fast_math)
            pipeline = cpu_pipeline(machine, options, measured)

            def listing(llvm_ir: str, _codes: Sequence[bytes], numbers: Sequence[int]) -> tuple[str, list[int]]:
                text = object_code.assembly(llvm_ir, target)
                return text, numbers_of_assembly(text, object_code.assembly(marked(llvm_ir, numbers), target))

            emit = partial(object_code.emit, target=target)
            return BackEnd(pipeline, emit, _launch_of, machine, listing, prepares_loops=True)
        case "cuda":
            # Imported on demand: it is a tenth of the compiler.
            from .gpu_back_end import gpu_back_end_of

            return gpu_back_end_of(target, options, measured)
        case _:
            raise UnsupportedGraphError(
                f"this compiler has no code generator for {target.kind} targets; use a cpu or cuda target",
                details={"target": target.kind},
            )


def _launch_of(item: KernelItem) -> Launch:
    """At least one work-group on a CPU, which does nothing if the kernel's tensors are empty."""
    return Launch(groups=expr.maximum(work_groups(item.context)[0], 1))

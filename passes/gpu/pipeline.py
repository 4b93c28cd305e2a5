"""The compiler pipeline of a CUDA target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from passes.boundary import AFFINE, KILN, LLVM, LOOPS, TENSORS, UNBUFFERED
from passes.decompose import decompose
from passes.decompose.split_reductions import split_reductions
from passes.fuse import form_kernels
from passes.lower import lower_to_llvm
from passes.merge_kernels import merge_kernels
from passes.plan.in_place import Reuse
from passes.stage import Stage
from passes.strategy import UNMEASURED, Picker, schedule
from passes.to_linalg.kernels import kernels_to_linalg
from passes.upstream import bufferize
from tensorkiln.options import CompileOptions

from .abi import mark_kernels
from .long_reductions import split_of
from .machine import Machine
from .realise import realise_kernels
from .strategies import STRATEGIES, UNSCHEDULED


def gpu_pipeline(
    machine: Machine, options: CompileOptions, measured: Mapping[str, float] = UNMEASURED
) -> tuple[Stage, ...]:
    """kiln -> LLVM dialect with NVVM."""
    own = frozenset({machine.intrinsics.dialect})
    is_scheduled = options.schedule == "auto"
    strategies = STRATEGIES if is_scheduled else UNSCHEDULED
    reuse = Reuse.POINTS if options.fusion and is_scheduled else None
    return (
        Stage("decompose", decompose, KILN),
        Stage("split-reductions", partial(split_reductions, split_of=split_of), KILN),
        Stage("form-kernels", partial(form_kernels, fusion=options.fusion, reload=machine.reload), KILN),
        Stage("merge-kernels", merge_kernels, KILN),
        Stage("to-linalg", kernels_to_linalg, TENSORS),
        Stage("schedule", partial(schedule, picker=Picker(strategies, machine, measured), reuse=reuse), TENSORS),
        Stage("realise", partial(realise_kernels, machine=machine), (LOOPS if is_scheduled else UNBUFFERED) | own),
        *(() if is_scheduled else (Stage("bufferize", bufferize, LOOPS | AFFINE | own),)),
        Stage("lower", lower_to_llvm, LLVM | own),
        Stage("entries", partial(mark_kernels, intrinsics=machine.intrinsics), LLVM | own),
    )

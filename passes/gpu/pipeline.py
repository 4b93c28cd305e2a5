"""The whole compiler of a CUDA target."""

from __future__ import annotations

from functools import partial

from dialect.mlir import ir
from passes.decompose import decompose
from passes.form_kernels import form_kernels
from passes.lower import lower_to_llvm
from passes.schedule.attach import attach_schedules
from passes.schedule.choice import Choice
from passes.schedule.in_place import Reuse
from passes.schedule.stages import KernelBody
from passes.stage import Stage
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target

from .abi import mark_kernels
from .machine import Machine, machine_of
from .realise import realise_kernels
from .split_reductions import split_reductions
from .strategies import choose_strategy


def gpu_pipeline(target: Target, options: CompileOptions) -> tuple[Stage, ...]:
    """kiln -> LLVM dialect with NVVM."""
    machine = machine_of(target, fast_math=options.fast_math)
    return (
        Stage("decompose", decompose),
        Stage("split-reductions", split_reductions),
        Stage("form-kernels", form_kernels),
        Stage("schedule", partial(schedule, machine=machine)),
        Stage("to-linalg", partial(realise_kernels, machine=machine)),
        Stage("lower", lower_to_llvm),
        Stage("entries", mark_kernels),
    )


def schedule(module: ir.Module, machine: Machine) -> ir.Module:
    """Choose how every kernel runs; the choice is written on its function."""

    def choose(body: KernelBody) -> Choice:
        return choose_strategy(body, machine)

    attach_schedules(module, choose, Reuse.POINTS)
    return module

"""The whole compiler of a CPU target."""

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

from .machine import Machine, machine_of
from .realise import add_entries, realise_kernels
from .strategies import choose_strategy


def cpu_pipeline(target: Target, options: CompileOptions) -> tuple[Stage, ...]:
    """kiln -> LLVM dialect."""
    machine = machine_of(target, fast_math=options.fast_math)
    return (
        Stage("decompose", decompose),
        Stage("form-kernels", form_kernels),
        Stage("schedule", partial(schedule, machine=machine)),
        Stage("to-linalg", partial(realise_kernels, machine=machine)),
        Stage("lower", lower_to_llvm),
        # The entries are in the LLVM dialect already, and call bodies by their lowered signature.
        Stage("entries", add_entries),
    )


def schedule(module: ir.Module, machine: Machine) -> ir.Module:
    """Choose how every kernel runs; the choice is written on its function."""

    def choose(body: KernelBody) -> Choice:
        return choose_strategy(body, machine)

    attach_schedules(module, choose, Reuse.ROWS)
    return module

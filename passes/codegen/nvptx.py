"""Compile LLVM IR text to PTX."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import llvmlite.binding as llvm

from tensorkiln.architectures import ARCHITECTURES, Architecture
from tensorkiln.errors import DiagnosticError
from tensorkiln.ptx_rules import external_declarations
from tensorkiln.target import Target

from .llvm_targets import initialize
from .modules import parsing
from .nvptx_guard import only_selectable

TRIPLE: Final = "nvptx64-nvidia-cuda"
LEAST_PTX: Final = 70
"""The PTX ISA of CUDA 11.0, as ten times major plus minor; an older version would run on no more drivers."""

_DEFINITION: Final = re.compile(r'^\s*define (?P<linkage>[^@\n]*)@(?P<name>"[^"\n]*"|[-\w.$]+)\(', re.MULTILINE)


def emit(llvm_ir: str, target: Target) -> str:
    """PTX of an optimised module; equal arguments give equal text on any machine.

    The module's `ptx_kernel` functions are its entries; the others are inlined into them. Raises DiagnosticError if
    LLVM rejects the module, if the target is not a CUDA one, and for anything that the back end has no code for, by
    name.
    """
    with _optimised(llvm_ir, target) as (machine, module):
        only_selectable(str(module), architecture_of(target))
        ptx = str(machine.emit_assembly(module))
    only_kernels(ptx)
    return ptx


def only_kernels(ptx: str) -> None:
    """Check that the SDK will load the PTX: raises DiagnosticError with every declaration that it would reject."""
    found = external_declarations(ptx)
    if found:
        raise DiagnosticError(
            f"the PTX leaves to its loader: {'; '.join(found)}", details={"stage": "codegen", "declarations": found}
        )


def optimised_ir(llvm_ir: str, target: Target) -> str:
    """The module after LLVM's optimiser, as text, for dumps. Raises DiagnosticError as `emit` does for bad IR."""
    with _optimised(llvm_ir, target) as (_, module):
        return str(module)


def architecture_of(target: Target) -> Architecture:
    """The architecture of a CUDA target; raises DiagnosticError for other targets."""
    architecture = ARCHITECTURES.get(target.arch or "") if target.kind == "cuda" else None
    if architecture is None:
        raise DiagnosticError(
            f"no PTX code generator for target kind {target.kind!r} with arch {target.arch!r}",
            details={"stage": "codegen"},
        )
    return architecture


@contextmanager
def _optimised(llvm_ir: str, target: Target) -> Generator[tuple[llvm.TargetMachine, llvm.ModuleRef]]:
    """The module until the end of the block."""
    architecture = architecture_of(target)
    initialize()
    features = f"+ptx{max(architecture.ptx, LEAST_PTX)}"
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=architecture.name, features=features, opt=3)
    with parsing() as parse:
        module = parse(llvm_ir)
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        _inline_all_but_kernels(llvm_ir, module)
        _optimise(module, machine)
        yield machine, module


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # A thread's arrays can be registers only if the loops over them are unrolled: a register has no address. The
    # vectorisers would pack small integers and halves into vectors that have no code.
    options.loop_unrolling = True
    options.loop_vectorization = False
    options.loop_interleaving = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _inline_all_but_kernels(llvm_ir: str, module: llvm.ModuleRef) -> None:
    for definition in _DEFINITION.finditer(llvm_ir):
        if "ptx_kernel" not in definition["linkage"].split():
            function = module.get_function(definition["name"].strip('"'))
            function.linkage = llvm.Linkage.internal
            function.add_function_attribute("alwaysinline")

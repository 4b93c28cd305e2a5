"""LLVM IR text as PTX."""

from __future__ import annotations

import llvmlite.binding as llvm

from tensorkiln.target import Target

from .llvm_targets import initialize


def emit(llvm_ir: str, target: Target) -> str:
    """PTX text of an optimised module."""
    initialize()
    back_end = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    handle = back_end.create_target_machine(cpu=target.arch or "", features="+ptx80", opt=3)
    module = llvm.parse_assembly(llvm_ir)
    module.triple = "nvptx64-nvidia-cuda"
    module.data_layout = str(handle.target_data)
    module.verify()
    builder = llvm.create_pass_builder(handle, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    return str(handle.emit_assembly(module))

"""Translate a module of the LLVM dialect to LLVM IR text for llvmlite's LLVM."""

from __future__ import annotations

from dialect.mlir import ir, llvm

from .guard import only_llvm
from .llvm_skew import downgrade
from .share_bodies import share_bodies


def to_llvm_ir(module: ir.Module) -> str:
    """LLVM IR text in the spelling of LLVM 22; bodies that differ only in sizes are merged.

    Raises DiagnosticError if an operation is not of the LLVM dialect.
    """
    only_llvm(module)
    return share_bodies(downgrade(untouched(module)))


def untouched(module: ir.Module) -> str:
    """LLVM IR text in MLIR's spelling, for a module that `only_llvm` accepts."""
    return str(llvm.translate_module_to_llvmir(module.operation))

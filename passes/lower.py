"""linalg, scf and vector code on memrefs -> LLVM dialect, for every target."""

from __future__ import annotations

from dialect.mlir import PassManager, ir

LOWERING = (
    "convert-linalg-to-loops",
    "fold-memref-alias-ops",
    "canonicalize",
    "cse",
    "expand-strided-metadata",
    "lower-affine",
    "loop-invariant-code-motion",
    # Without full unrolling, transfers become loops around allocas: a stack overflow.
    "convert-vector-to-scf{full-unroll=true}",
    "convert-scf-to-cf",
    "convert-vector-to-llvm{reassociate-fp-reductions=true}",
    "arith-expand",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    # One conversion of several dialects walks the module once.
    "convert-to-llvm{filter-dialects=arith,cf,index,math,memref,ub}",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)


def lower_to_llvm(module: ir.Module) -> ir.Module:
    """Lower every function of `module`; the order is that of `LOWERING`."""
    manager = PassManager.parse(f"builtin.module({','.join(LOWERING)})", module.context)
    # The compiler verifies after every stage; verifying after each pass would take longer than the passes.
    manager.enable_verifier(False)
    manager.run(module.operation)
    return module

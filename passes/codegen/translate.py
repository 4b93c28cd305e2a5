"""Translate a module of the LLVM dialect to LLVM IR text for llvmlite's LLVM."""

from __future__ import annotations

import re

from dialect.mlir import ir, llvm
from passes.legality import are_only
from tensorkiln.errors import DiagnosticError

from .llvm_skew import downgrade
from .share_bodies import share_bodies

_POINTER = re.compile(r'"(/nodes/\d+)[^"]*"')
_NAMED_IN_MESSAGE = 8
_DIALECTS = ("llvm", "nvvm")
_TRANSLATABLE = tuple(f"{dialect}." for dialect in _DIALECTS)


def to_llvm_ir(module: ir.Module) -> str:
    """LLVM IR text in the spelling of LLVM 22; bodies that differ only in sizes are merged.

    Raises DiagnosticError if an operation is not of the LLVM dialect, which would crash the process.
    """
    only_llvm(module)
    return share_bodies(downgrade(str(llvm.translate_module_to_llvmir(module.operation))))


def only_llvm(module: ir.Module) -> None:
    """Check that every operation is a registered one of the LLVM or NVVM dialect, in one `builtin.module`.

    Raises DiagnosticError with each kind of leftover operation, and the location of the first of each.
    """
    context = module.context
    tops = (top.operation for top in module.body.operations)
    if not context.allow_unregistered_dialects and are_only(tops, _DIALECTS, (), context):
        return
    leftovers: dict[str, str] = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        is_root = operation.parent is None and name == "builtin.module"
        if not is_root and not (name.startswith(_TRANSLATABLE) and context.is_registered_operation(name)):
            leftovers.setdefault(name, str(operation.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not leftovers:
        return
    listed = ", ".join(f"{name} at {where}" for name, where in sorted(leftovers.items())[:_NAMED_IN_MESSAGE])
    pointers = [pointer for where in leftovers.values() for pointer in _POINTER.findall(where)]
    raise DiagnosticError(
        f"{len(leftovers)} kinds of operations were not lowered to LLVM: {listed}",
        pointers=list(dict.fromkeys(pointers)),
        details={"stage": "translate", "operations": sorted(leftovers)},
    )

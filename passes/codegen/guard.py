"""Refuse a module that LLVM IR cannot be made of: translation does not fail on one, it crashes the process."""

from __future__ import annotations

import re

from dialect.mlir import ir
from tensorkiln.errors import DiagnosticError

_POINTER = re.compile(r'"(/nodes/\d+)[^"]*"')
_NAMED_IN_MESSAGE = 8
_TRANSLATABLE = ("llvm.", "nvvm.")


def only_llvm(module: ir.Module) -> None:
    """Check that every operation is a registered one of the LLVM or NVVM dialect, in one `builtin.module`.

    Raises DiagnosticError that names each kind of leftover, and where the first of each comes from.
    """
    context = module.context
    leftovers: dict[str, str] = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = str(operation.name)
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

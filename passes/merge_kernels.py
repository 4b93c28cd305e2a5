"""kiln -> kiln: merge equal kernels into one function, called from several places.

Two kernels are equal if their texts are, ignoring name and locations. A call keeps the nodes of its own kernel
(`NODES`), since the function is that of the first kernel.
"""

from __future__ import annotations

from dialect.mlir import func, ir
from dialect.module import graph_function

from .values import functions_of, is_kernel, kernel_text


def merge_kernels(module: ir.Module) -> ir.Module:
    """Call the first of equal kernels of `module` everywhere, and erase the others."""
    first: dict[str, str] = {}
    name_of: dict[str, str] = {}
    repeated: list[ir.Operation] = []
    for name, function in functions_of(module).items():
        if is_kernel(function):
            name_of[name] = first.setdefault(kernel_text(function), name)
            if name_of[name] != name:
                repeated.append(function)
    for op in graph_function(module).regions[0].blocks[0].operations:
        if isinstance(op, func.CallOp):
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(name_of[callee], module.context)
    for function in repeated:
        function.erase()
    return module

"""kiln kernels -> linalg on tensors: what a kernel computes, for every target, in a form that upstream can lower."""

from __future__ import annotations

from dialect.mlir import func, ir

from ..trace.kernel_body import kernel_body
from ..values import ROWS, is_kernel, read_function, read_symbols
from .scalar_ops import ScalarFunctions
from .write_kernel import write_kernel


def kernels_to_linalg(module: ir.Module) -> ir.Module:
    """Trace each kernel of `module` into a function of its own.

    What `@graph` calls stays as a declaration, which has the types of the graph: the shapes in terms of the symbols.
    """
    symbols = read_symbols(module)
    scalars = ScalarFunctions(module.body)
    kernels = [op.operation for op in module.body.operations if is_kernel(op.operation)]
    for function in kernels:
        rows = ir.IntegerAttr(function.attributes[ROWS]).value
        body = kernel_body(read_function(function, symbols), rows)
        with ir.InsertionPoint(module.body), function.location:
            write_kernel(body, scalars)
        with ir.InsertionPoint(function), function.location:
            kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            declared = func.FuncOp(body.function.name, kind, visibility="private")
            declared.attributes[ROWS] = function.attributes[ROWS]
        function.erase()
    return module

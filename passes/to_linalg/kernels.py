"""kiln kernels -> linalg on tensors: the computation of a kernel, for every target, in a form that MLIR can lower."""

from __future__ import annotations

from dialect.mlir import func, ir

from ..loops.body import KernelBody
from ..loops.scatter import is_scatter
from ..origins import current
from ..trace.kernel_body import kernel_body
from ..values import ROWS, is_kernel, read_function, read_symbols
from .scalar_ops import ScalarFunctions
from .write_kernel import KernelWriter

STORES = "kiln.stores"
"""Attribute of a generic: the roots that its results are, counted from 0 in the order of the kernel."""


def kernels_to_linalg(module: ir.Module) -> ir.Module:
    """Trace each kernel of `module` into a function of its own.

    The functions that `@graph` calls stay as declarations with the types of the graph, whose shapes are in terms of
    symbols.
    """
    symbols = read_symbols(module)
    scalars, origins = ScalarFunctions(module.body), current()
    kernels = [op.operation for op in module.body.operations if is_kernel(op.operation)]
    for function in kernels:
        rows = ir.IntegerAttr(function.attributes[ROWS]).value
        body = kernel_body(read_function(function, symbols), rows)
        if origins is not None:
            origins.settle(body)
        with ir.InsertionPoint(module.body), function.location:
            made = KernelWriter(body, scalars).write()
            if not is_scatter(body):
                _mark_stores(made, body)
        with ir.InsertionPoint(function), function.location:
            kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            declared = func.FuncOp(body.function.name, kind, visibility="private")
            declared.attributes[ROWS] = function.attributes[ROWS]
        function.erase()
    return module


def _mark_stores(made: ir.Operation, body: KernelBody) -> None:
    """Record on each generic which roots it computes, for readers of the text: calls name the nodes of each root."""
    places = {root: at for at, root in enumerate(value for value in body.function.values if value.is_root)}
    generics = (op.operation for op in made.regions[0].blocks[0].operations if op.operation.name == "linalg.generic")
    stages = (stage for stage in body.stages if stage.stores)
    for generic, stage in zip(generics, stages, strict=True):
        generic.attributes[STORES] = ir.DenseI64ArrayAttr.get([places[entry.root] for entry in stage.stores])

"""The function that is the graph."""

from __future__ import annotations

from dialect.mlir import ir


def graph_function(module: ir.Module) -> ir.Operation:
    """The function `@graph` of a module."""
    for op in module.body.operations:
        operation = op.operation
        if operation.name == "func.func" and ir.StringAttr(operation.attributes["sym_name"]).value == "graph":
            return operation
    raise LookupError("the module has no function @graph")

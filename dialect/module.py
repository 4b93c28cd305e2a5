"""Access to a module of the kiln dialect: its function, symbols and ops, and the node of an op."""

from __future__ import annotations

from collections.abc import Iterator

from tensorkiln.nodes import SymVar

from .mlir import func, ir
from .operation import KilnOp
from .symbolic import symbol_of

FUNCTION = "graph"
"""The name of the function that a graph becomes."""

SYMBOLS = "kiln.symbols"
"""The attribute of that function that lists the symbols."""

PARAMETER = "kiln.parameter"
"""The unit attribute of an argument of that function that callers bind once."""

CARRIED = "kiln.carried"
"""The unit attribute of an argument of that function that the result at the same position replaces for another call."""

NODE = "kiln.node"
"""The attribute of an op that holds the index of its node."""


def graph_function(module: ir.Module) -> ir.OpView:
    """The `func.func` of the graph. Raises KeyError if the module has none."""
    for op in module.body.operations:
        if isinstance(op, func.FuncOp) and op.sym_name.value == FUNCTION:
            return op
    raise KeyError(f"the module has no function @{FUNCTION}")


def symbols(module: ir.Module) -> tuple[SymVar, ...]:
    """The symbols of the graph with their bounds; a fixed symbol has its value for both."""
    return tuple(symbol_of(entry) for entry in graph_function(module).attributes[SYMBOLS])


def kiln_ops(root: ir.Operation | ir.OpView) -> Iterator[KilnOp]:
    """The kiln ops below `root`, in order, each as an instance of its class.

    Later ops must not be erased during iteration: list them first to erase any.
    """
    for region in root.regions:
        for block in region:
            for op in block.operations:
                if isinstance(op, KilnOp):
                    yield op
                else:
                    yield from kiln_ops(op)


def node_index(op: ir.Operation | ir.OpView) -> int | None:
    """The node index of an op; None for an op that a pass made without one."""
    return op.attributes[NODE].value if NODE in op.attributes else None

"""The rules of the kiln dialect that its definition cannot express, checked for a whole module in one walk.

The definition counts operands and checks the kind of each attribute, natively and after every pass. A Python hook for
the other rules would cost 20 microseconds per op each time, so they are checked on request, at the end of a stage.
Shapes and dtypes were inferred for the graph; this checks what a pass can break.
"""

from __future__ import annotations

from tensorkiln.errors import DiagnosticError

from .diagnostics import to_error
from .locations import node_pointers
from .mlir import ir
from .module import kiln_ops
from .operation import KilnOp
from .types import NotATensorError, type_of


def verify(module: ir.Module, stage: str) -> None:
    """Check a module of any dialects. Raises DiagnosticError for the first violation, with the pointer of the op's
    node.
    """
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise to_error(error, stage) from error
    for op in kiln_ops(module.operation):
        problem = _problem(op)
        if problem is not None:
            raise DiagnosticError(
                f"stage {stage}: {op.OPERATION_NAME}: {problem}",
                pointers=node_pointers(op.location),
                details={"stage": stage, "diagnostics": [str(op)]},
            )


def _problem(op: KilnOp) -> str | None:
    try:
        for value in op.results:
            type_of(value)
        return op.problem()
    except NotATensorError as error:
        return str(error)

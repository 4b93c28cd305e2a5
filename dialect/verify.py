"""The rules of the kiln dialect that its definition cannot state, checked for a whole module in one walk.

The definition counts operands and checks the kind of each attribute, natively and after every pass. For the rest a hook
in Python would cost 20 microseconds an op each time, so it is asked for: at the end of a stage. Shapes and dtypes were
inferred for the graph; what is checked here is what a pass can break.
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
    """Check a module of any dialects. DiagnosticError for the first violation, with the pointer of the op's node."""
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

"""Do the one-time work of a first compile before a process forks its workers.

It imports modules that are loaded on demand, sets up LLVM's back ends and MLIR's dialects and passes, and fills their
tables.
"""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path
from typing import Final

from dialect.kiln import prepare_context
from dialect.mlir import ir
from tensorkiln.graph import Graph
from tensorkiln.target import Target

from .compile import Compilation, CompileRequest, compile_request

TARGETS: Final = ("cpu",)
"""The targets that are warmed up."""
_GRAPH: Final = Path(__file__).with_suffix(".json")


@cache
def graph() -> Graph:
    """A contraction, reductions and elementwise ops over a symbolic number of rows."""
    return Graph.model_validate_json(_GRAPH.read_bytes())


def warm_up() -> tuple[Compilation, ...]:
    """Compile a small graph for each of TARGETS; returns the results in that order.

    No thread is left, so the process can fork, and the one MLIR context that is left is unused: the first compile of a
    forked process takes it. Raises the errors of a compile, and RuntimeError if a compile leaves its context.
    """
    compilations = tuple(compile_request(CompileRequest(graph(), Target.parse(target))) for target in TARGETS)
    # Reference cycles of a compile keep its context alive.
    gc.collect()
    if left := ir.Context._get_live_count():
        raise RuntimeError(f"{left} MLIR contexts are left")
    prepare_context()
    return compilations

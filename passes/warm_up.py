"""What a first compile pays and a second does not, paid once: before a process forks those that compile.

Modules that are imported when they are first needed, LLVM's back ends, MLIR's dialects and passes, and the tables
that all of these fill on first use.
"""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path
from typing import Final

from dialect.mlir import ir
from tensorkiln.graph import Graph
from tensorkiln.target import Target

from .compile import Compilation, CompileRequest, compile_request

TARGETS: Final = ("cpu",)
"""Those of which nothing is compiled for the first time afterwards."""
_GRAPH: Final = Path(__file__).with_suffix(".json")


@cache
def graph() -> Graph:
    """A contraction, reductions and elementwise ops over a symbolic number of rows."""
    return Graph.model_validate_json(_GRAPH.read_bytes())


def warm_up() -> tuple[Compilation, ...]:
    """Compile a small graph for every one of TARGETS; the results in their order.

    No MLIR context and no thread is left, so that the process can fork. Raises what a compile raises, and RuntimeError
    when a context is left.
    """
    compilations = tuple(compile_request(CompileRequest(graph(), Target.parse(target))) for target in TARGETS)
    # What a compile leaves in cycles of references keeps its context.
    gc.collect()
    if left := ir.Context._get_live_count():
        raise RuntimeError(f"{left} MLIR contexts are left")
    return compilations

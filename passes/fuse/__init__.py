"""Fusion, kiln -> kiln: one function per kernel, and a graph function that calls them."""

from __future__ import annotations

from dialect.mlir import ir
from dialect.module import graph_function
from tensorkiln import expr
from tensorkiln.dtypes import DType

from ..values import Value, read_function, read_symbols
from .grouping import Grouper
from .materialise import RELOAD, is_table, live_values, materialised
from .outline import Outliner
from .prepare import prepared_values


def form_kernels(module: ir.Module, *, fusion: bool = True, chains: bool = False, reload: int = RELOAD) -> ir.Module:
    """Cut `@graph` into kernels; returns a module with `@graph` and one private function per kernel.

    Without `fusion` each kernel computes one op, and nothing is placed inside another value. With `chains` a kernel may
    have two contractions. `reload` is the cost of storing an element and loading it again, in additions.
    """
    source = graph_function(module).operation
    function = read_function(source, read_symbols(module))
    live = live_values(function)
    prepared = prepared_values(function, live)
    stored = materialised(function, live, prepared, fusion, reload)
    kept = [value for value in live if value in stored]
    in_memory = stored.union(function.results)
    host = [
        value
        for value in live
        if is_table(value) or (value in in_memory and (_is_nothing(value) or value.dtype is DType.UNIT))
    ]
    with module.context, ir.Location.unknown():
        # Prepared values come first, so that no kernel of a call waits behind them.
        kept = sorted((value for value in kept if not _is_nothing(value)), key=lambda value: value not in prepared)
        grouping = Grouper(function, live, kept, host, prepared, fusion, chains).run()
        return Outliner(source, function, grouping).run(host)


def _is_nothing(value: Value) -> bool:
    """Whether the value needs no computation: it has no elements and is not a loop result, for which the loop needs a
    buffer.
    """
    return expr.product(value.shape) == 0 and value.kind != "while_result"

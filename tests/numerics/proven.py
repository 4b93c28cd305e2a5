"""The share of accesses that are proven to stay in their memory: `python -m tests.numerics.proven` prints it.

Of the kernels of every node kind and dtype, of every small network, and of the models in `tests/models/`, for a CPU and
for a GPU. What is not proven is printed with its graph.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis.strategies import SearchStrategy

from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tests.bounds import accesses
from tests.bounds.walk import Access
from tests.models.exports import EXPORTS
from tests.passes.modules import realised

from .cases import CHAINS, KINDS, Case, chain_for, dtypes_of, graph_for
from .cases.drawn import for_each_of

TARGETS = ("cpu:x86-64-v3", "cuda:sm_80")


def accesses_of(graph: Graph, target: str) -> list[Access]:
    """Every access of the kernels that the graph becomes."""
    return accesses(realised(graph, target), graph.constraints)


def graphs(kind: str, dtypes: Sequence[DType], count: int) -> list[Graph]:
    """`count` static and as many symbolic graphs of a node kind, of each dtype; the shapes are drawn."""
    strategies = (graph_for(kind, dtype, symbolic) for dtype in dtypes for symbolic in (False, True))
    return [graph for strategy in strategies for graph in _drawn(strategy, count)]


def networks(count: int) -> list[Graph]:
    """`count` static and as many symbolic graphs of each small network, of its first dtype."""
    strategies = (chain_for(name, CHAINS[name].dtypes[0], symbolic) for name in CHAINS for symbolic in (False, True))
    return [graph for strategy in strategies for graph in _drawn(strategy, count)]


def _drawn(strategy: SearchStrategy[Case], count: int) -> list[Graph]:
    found: list[Graph] = []
    for_each_of(count, strategy, lambda case: found.append(case.graph))
    return found


def _everything() -> Iterator[tuple[str, list[Graph]]]:
    yield "node kinds", [graph for kind in KINDS for graph in graphs(kind, dtypes_of(kind), 1)]
    yield "small networks", networks(2)
    yield "models", [export.load().graph for export in EXPORTS]


def main() -> None:
    """Print a line for each target and sort of graph."""
    for name, found in _everything():
        for target in TARGETS:
            counts: Counter[tuple[bool, bool]] = Counter()
            start = time.process_time()
            for graph in found:
                for access in accesses_of(graph, target):
                    counts[access.is_store, access.is_proven] += 1
                    if not access.is_proven:
                        print(f"  {graph.name}: {access}")
            shares = [
                f"{counts[is_store, True]} of {counts[is_store, True] + counts[is_store, False]} {what}"
                for is_store, what in ((True, "stores"), (False, "loads"))
            ]
            print(f"{name}, {target}: {', '.join(shares)}; {time.process_time() - start:.1f} s")


if __name__ == "__main__":
    main()

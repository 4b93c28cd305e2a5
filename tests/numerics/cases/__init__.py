"""Hypothesis strategies of small valid graphs with arrays full of edge values, and the comparison with the reference.

    @given(graph_for("binop", DType.INT32, symbolic=False, op="idiv"))   or   @given(chains())
    def test(case):
        expected = reference.evaluate(case.graph, *case.arrays, **case.symbols)
        compare(run(case.graph, *case.arrays, **case.symbols), expected, case.tolerance)

`KINDS`, `dtypes_of(kind)`, `ops_of(kind, dtype)` and `variants()` enumerate what `graph_for` takes; `CHAINS` and
`chain_for` do the same for whole networks. Nothing here reads a buffer that was never written.
"""

from .chains import CHAINS, chain_for, chains
from .kinds import KINDS, dtypes_of, graph_for, ops_of, variants
from .sketch import Case
from .tolerance import EXACT, Tolerance, compare, tolerance

__all__ = [
    "CHAINS",
    "EXACT",
    "KINDS",
    "Case",
    "Tolerance",
    "chain_for",
    "chains",
    "compare",
    "dtypes_of",
    "graph_for",
    "ops_of",
    "tolerance",
    "variants",
]

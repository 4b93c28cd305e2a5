"""kiln -> kiln: replace ops that later passes do not handle by ops that they do."""

from __future__ import annotations

from dialect.mlir import ir
from dialect.module import graph_function
from passes.loops.index_space import IndexSpace
from passes.values import read_symbols

from . import builder
from .contraction import CONTRACTION
from .narrow_factors import NARROW_FACTORS
from .narrow_sums import NARROW_SUMS
from .scatter import scatters
from .storage import STORAGE
from .truth import make_truths_plain

DECOMPOSITIONS = (CONTRACTION, {**NARROW_SUMS, **STORAGE}, NARROW_FACTORS)
"""Functions from an op to its replacement, or to None if it stays. Later tables see the results of earlier ones."""


def decompose(module: ir.Module) -> ir.Module:
    """Replace every op of `@graph` that has a decomposition; the new ops get its location. Bools that would be passed
    on unchanged are stored.
    """
    block = graph_function(module).regions[0].blocks[0]
    for decompositions in (*DECOMPOSITIONS, scatters(IndexSpace(read_symbols(module)))):
        builder.replace(block, decompositions)
    make_truths_plain(block)
    return module

"""kiln -> kiln: replace ops that later passes do not handle by ops that they do."""

from __future__ import annotations

from dialect.mlir import ir
from dialect.module import PARAMETER, graph_function
from passes.values import marked_arguments

from . import builder
from .contraction import CONTRACTION
from .narrow_factors import NARROW_FACTORS
from .narrow_sums import NARROW_SUMS
from .storage import STORAGE
from .truth import make_truths_plain
from .zero_points import take_zero_points_out

DECOMPOSITIONS = (CONTRACTION, {**NARROW_SUMS, **STORAGE}, NARROW_FACTORS)
"""Functions from an op to its replacement, or to None if it stays. Later tables see the results of earlier ones."""


def decompose(module: ir.Module, *, multiplies_bytes: bool = False) -> ir.Module:
    """Replace every op of `@graph` that has a decomposition; the new ops get its location. Bools that would be passed
    on unchanged are stored. A target that `multiplies_bytes` gets products of bytes without zero points.
    """
    function = graph_function(module)
    block = function.regions[0].blocks[0]
    first, *others = DECOMPOSITIONS
    builder.replace(block, first)
    if multiplies_bytes:
        parameters = [block.arguments[at] for at in marked_arguments(function.operation, PARAMETER)]
        builder.replace(block, {"kiln.reduce_axis": take_zero_points_out(parameters)})
    for decompositions in others:
        builder.replace(block, decompositions)
    make_truths_plain(block)
    return module

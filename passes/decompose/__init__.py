"""kiln -> kiln: replace ops that later passes do not handle by ops that they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dialect.mlir import ir
from dialect.module import PARAMETER, graph_function
from passes.loops.index_space import IndexSpace
from passes.values import marked_arguments, read_symbols

from . import builder
from .contraction import CONTRACTION
from .narrow_factors import NARROW_FACTORS
from .narrow_sums import NARROW_SUMS
from .padded_windows import leave_padding_out
from .repeated import reduce_once
from .scales import take_scales_out
from .scatter import scatters
from .storage import STORAGE
from .truth import make_truths_plain
from .zero_points import take_zero_points_out

Decompositions = Mapping[str, Callable[[Any], "ir.Value | None"]]
"""Functions from an op to its replacement, or to None if it stays, by the name of the op."""


def decompose(module: ir.Module, *, multiplies_bytes: bool = False, multiplies_signed: bool = False) -> ir.Module:
    """Replace every op of `@graph` that has a decomposition; the new ops get its location. Bools that would be passed
    on unchanged are stored. A target that `multiplies_bytes` gets products of bytes without scales and zero points, of
    which one has no sign unless it `multiplies_signed`.
    """
    block = graph_function(module).regions[0].blocks[0]
    for decompositions in _tables(module, multiplies_bytes, multiplies_signed):
        builder.replace(block, decompositions)
    leave_padding_out(module)
    make_truths_plain(block)
    return module


def _tables(module: ir.Module, multiplies_bytes: bool, multiplies_signed: bool) -> Iterator[Decompositions]:
    """The decompositions in order: later tables see the results of earlier ones."""
    yield CONTRACTION
    yield {"kiln.reduce_axis": reduce_once(IndexSpace(read_symbols(module)))}
    if multiplies_bytes:
        function = graph_function(module)
        arguments = function.regions[0].blocks[0].arguments
        parameters = [arguments[at] for at in marked_arguments(function.operation, PARAMETER)]
        yield {"kiln.reduce_axis": take_scales_out(parameters, IndexSpace(read_symbols(module)))}
        yield {"kiln.reduce_axis": take_zero_points_out(parameters, multiplies_signed=multiplies_signed)}
    yield {**NARROW_SUMS, **STORAGE}
    yield NARROW_FACTORS
    yield scatters(IndexSpace(read_symbols(module)))

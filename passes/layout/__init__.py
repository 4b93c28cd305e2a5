"""kiln -> kiln: store the images of convolutions in blocks of channels.

A vector then holds neighbouring channels of one pixel: the channels that a convolution reads of a pixel are contiguous,
its weights are the vectors of its products, and every map, window and sum over pixels runs on whole vectors, however
small the image. A value of `(…, channels, …)` elements is stored as `(…, channels / block, …, block)`, and permuted
back for readers that are not known to gain. All of that is movement, which costs index arithmetic at most.
"""

from __future__ import annotations

from dialect.mlir import ir
from dialect.module import graph_function

from ..fuse.materialise import live_values
from ..fuse.prepare import prepared_values
from ..values import read_function, read_symbols
from .choose import Chooser
from .long_windows import multiplies_new_values, order_long_windows
from .rewrite import rewrite


def block_channels(module: ir.Module, *, block: int) -> ir.Module:
    """Store images in blocks of `block` channels where convolutions gain by it."""
    graph = graph_function(module)
    function = read_function(graph.operation, read_symbols(module))
    live = live_values(function)
    prepared = prepared_values(function, live)
    may_be_long = any(multiplies_new_values(value, prepared) for value in live)
    chosen = Chooser(function, prepared, block).run(live)
    if chosen.axes:
        with module.context, ir.Location.unknown():
            rewrite(graph.operation, function, chosen, block)
    if may_be_long:
        with module.context, ir.Location.unknown():
            order_long_windows(graph.operation, read_function(graph.operation, read_symbols(module)))
    return module

"""The inner loops of a contraction on packed operands: one function per element type and tile, shared by kernels."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir, memref, scf, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.loops.index_space import IndexSpace
from passes.scalar import mlir_scalar
from passes.scalar.registers import zero
from tensorkiln.expr import symbol

from .blocking import VECTORS_PER_TILE, Blocking
from .shared_functions import shared_function


def micro_kernel(module: ir.Operation, product: Product, blocking: Blocking, *, by_step: bool) -> str:
    """The name of the function for these sizes in `module`, which is added when it is not there.

    `f(left, right, result, row tiles, column tiles, depth, left first, left panel, right first, right panel, stride)`
    adds the product of panels to the result block, whose rows are `stride` elements apart. The first panel of an
    operand is `first` elements into it, and each has `panel` elements. One on the left holds `tile_rows` rows of
    `block_depth` elements, or, `by_step`, `tile_rows` elements for each step of the depth. One on the right holds
    `tile_columns` for each step.
    """
    kind = "_by_step" if by_step else ""
    name = f"multiply_{product}_{blocking.tile_rows}x{blocking.tile_columns}_{blocking.lanes}{kind}"
    pointer, index = ir.MemRefType.get([], mlir_scalar(product.dtype)), ir.IndexType.get()

    def define(arguments: Sequence[ir.Value]) -> None:
        _define(arguments, product, blocking, by_step)

    return shared_function(module, name, [pointer] * 3 + [index] * 8, define)


SIZES = ("left_first", "left_panel", "right_first", "right_panel", "stride")


def _define(arguments: Sequence[ir.Value], product: Product, blocking: Blocking, by_step: bool) -> None:
    left, right, result, row_tiles, column_tiles, depth, *sizes = arguments
    emit = IndexEmitter(IndexSpace(dict.fromkeys(SIZES, (0, 1 << 40))), dict(zip(SIZES, sizes, strict=True)))
    columns = scf.ForOp(emit(0), column_tiles, emit(1))
    with ir.InsertionPoint(columns.body):
        rows = scf.ForOp(emit(0), row_tiles, emit(1))
        with ir.InsertionPoint(rows.body):
            names = {"row": rows.induction_variable, "column": columns.induction_variable}
            _tile(product, blocking, (left, right, result), depth, by_step, emit.inside(names))
            scf.YieldOp([])
        scf.YieldOp([])


def _tile(
    product: Product,
    blocking: Blocking,
    operands: tuple[ir.Value, ir.Value, ir.Value],
    depth: ir.Value,
    by_step: bool,
    index: IndexEmitter,
) -> None:
    """One register tile over the whole packed depth."""
    left, right, result = operands
    lanes, stride = blocking.lanes, symbol("stride")
    kind = ir.VectorType.get([lanes], mlir_scalar(product.dtype))
    places = [(row, part) for row in range(blocking.tile_rows) for part in range(VECTORS_PER_TILE)]
    corner = symbol("row") * stride * blocking.tile_rows + symbol("column") * blocking.tile_columns
    views = [strided_view(result, corner + stride * row + part * lanes, (lanes,), (1,), index) for row, part in places]
    nothing = vector.BroadcastOp(kind, zero(product.dtype)).result
    steps = scf.ForOp(index(0), depth, index(1), [nothing] * len(views))
    with ir.InsertionPoint(steps.body):
        here = index.inside({"step": steps.induction_variable})
        panel = symbol("right_first") + symbol("column") * symbol("right_panel")
        at = panel + symbol("step") * blocking.tile_columns
        vectors = [
            vector.LoadOp(kind, strided_view(right, at + part * lanes, (lanes,), (1,), here), [here(0)]).result
            for part in range(VECTORS_PER_TILE)
        ]
        step, of_row = (blocking.tile_rows, 1) if by_step else (1, blocking.block_depth)
        start = symbol("left_first") + symbol("row") * symbol("left_panel") + symbol("step") * step
        after: list[ir.Value] = []
        for row in range(blocking.tile_rows):
            view = strided_view(left, start + row * of_row, (), (), here)
            repeated = vector.BroadcastOp(kind, memref.load(view, [])).result
            for part in range(VECTORS_PER_TILE):
                accumulator = steps.inner_iter_args[row * VECTORS_PER_TILE + part]
                after.append(product.added(repeated, vectors[part], accumulator))
        scf.YieldOp(after)
    # From zero and added once: a sum over a long depth then loses as much as one over its blocks, not over its steps.
    add = arith.addf if product.dtype.is_float else arith.addi
    for value, view in zip(steps.results, views, strict=True):
        before = vector.LoadOp(kind, view, [index(0)]).result
        vector.StoreOp(add(before, value), view, [index(0)])

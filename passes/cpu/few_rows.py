"""Products of a few rows: the right operand is read once, unpacked, and the sums stay in the cache.

For few rows, packing the right operand would take longer than multiplying. Eight steps of the depth are taken at a
time: eight rows of the right operand stream by, a vector of each is multiplied by every row on the left, and the sum is
added to the sums of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from dialect.mlir import arith, func, ir, memref, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import NEAREST_CACHE, prefetch, strided_view
from passes.emit.regions import branches, loop
from passes.loops.index_space import IndexSpace
from passes.scalar import mlir_scalar
from passes.scalar.registers import zero
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .offset_table import entry_of, table_types
from .shared_functions import shared_function

FEW_ROWS: Final = 16
"""Most rows for which this is faster than packing: with a right operand of 4 MB, 24 rows took as long either way."""
STEPS: Final = 8
"""Vectors of the right operand in registers."""
SIZES: Final = ("rows", "columns", "depth", "first_column", "result_first", "stride")


def multiply_few_rows(
    module: ir.Operation,
    product: Product,
    lanes: int,
    strides: tuple[int, int],
    operands: tuple[ir.Value, ir.Value, ir.Value, ir.Value],
    table: ir.Value,
    sizes: Sequence[Dim],
    starts: ir.Value,
    index: IndexEmitter,
    *,
    is_exact: bool,
) -> None:
    """Add the product of a block to its result, or store it there if it `starts`.

    `operands` are the left one, the right one, memory for the sums of the block, and the result; rows of the first and
    the third are `strides` elements apart. The right operand has the columns of a step contiguous, from `first_column`
    after the step's entry in `table`. `sizes` are those of SIZES. Vectors of the result are stored whole, unless the
    block `is_exact`: then the last one of a row is masked.
    """
    name = f"multiply_few_{product}_{lanes}_{strides[0]}_{strides[1]}" + ("_exact" if is_exact else "")
    pointer = ir.MemRefType.get([], mlir_scalar(product.dtype))
    types = [*[pointer] * 4, *table_types(1), *[ir.IndexType.get()] * len(SIZES), ir.IntegerType.get_signless(1)]

    def define(arguments: Sequence[ir.Value]) -> None:
        _FewRows(product, lanes, strides, arguments, is_exact).define()

    shared_function(module, name, types, define)
    func.CallOp([], name, [*operands, table, *(index(dim) for dim in sizes), starts])


class _FewRows:
    def __init__(
        self,
        product: Product,
        lanes: int,
        strides: tuple[int, int],
        arguments: Sequence[ir.Value],
        is_exact: bool,
    ) -> None:
        self.is_exact = is_exact
        self.product, self.lanes, (self.left_stride, self.sums_stride) = product, lanes, strides
        self.left, self.right, self.sums, self.result, self.table, *sizes, self.starts = arguments
        self.add = arith.addf if product.dtype.is_float else arith.addi
        self.vectors = ir.VectorType.get([lanes], mlir_scalar(product.dtype))
        self.masks = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        self.nothing = vector.BroadcastOp(self.vectors, zero(product.dtype)).result
        known = {name: (0, 1 << 40) for name in SIZES}
        self.index = IndexEmitter(IndexSpace(known), dict(zip(SIZES, sizes, strict=True)))

    def define(self) -> None:
        index = self.index
        self._each(lambda here: self._store(self.nothing, self._of_sums(here), here), index)
        rest = expr.mul(expr.floordiv(symbol("depth"), STEPS), STEPS)
        for first, last, steps in ((0, expr.sub(symbol("depth"), STEPS - 1), STEPS), (rest, symbol("depth"), 1)):
            with loop("step", first, last, steps, index) as here:
                index.space.bound("step", 0, 1 << 40)
                self._columns(steps, here)
        for is_first, region in branches(self.starts, index):
            with region as here:
                self._each(partial(self._finish, is_first), here)

    def _finish(self, is_first: bool, index: IndexEmitter) -> None:
        """Add the sums to the result once, so that the error of a long sum grows with its blocks, not its steps."""
        total, view = self._load(self._of_sums(index), index), self._of_result(index)
        if not self.is_exact:
            self._store(total if is_first else self.add(self._load(view, index), total), view, index)
            return
        mask = vector.create_mask(self.masks, [index(symbol("columns") - symbol("column"))])
        if not is_first:
            before = vector.MaskedLoadOp(self.vectors, view, [index(0)], mask, self.nothing).result
            total = self.add(before, total)
        vector.MaskedStoreOp(view, [index(0)], mask, total)

    def _load(self, view: ir.Value, index: IndexEmitter) -> ir.Value:
        return vector.LoadOp(self.vectors, view, [index(0)]).result

    def _store(self, value: ir.Value, view: ir.Value, index: IndexEmitter) -> None:
        vector.StoreOp(value, view, [index(0)])

    def _each(self, emit: Callable[[IndexEmitter], None], index: IndexEmitter) -> None:
        """Loop over the vectors of the block."""
        with (
            loop("row", 0, symbol("rows"), 1, index) as row,
            loop("column", 0, symbol("columns"), self.lanes, row) as column,
        ):
            emit(column)

    def _columns(self, steps: int, index: IndexEmitter) -> None:
        """Emit `steps` steps for all columns: whole vectors, then a partial one."""
        starts = [entry_of(self.table, symbol("step") + step, index) for step in range(steps)]
        names = {f"start{step}": start for step, start in enumerate(starts)}
        if steps > 1:
            for step in range(steps):
                place = expr.minimum(symbol("step") + (step + steps), symbol("depth") - 1)
                names[f"next{step}"] = entry_of(self.table, place, index)
        for name in names:
            index.space.bound(name, 0, 1 << 40)
        here = index.inside(names)
        with loop("column", 0, symbol("columns"), self.lanes, here) as inside:
            left_over = inside(symbol("columns") - symbol("column"))
            is_whole = arith.cmpi(arith.CmpIPredicate.sge, left_over, inside(self.lanes))
            for has_all, region in branches(is_whole, inside):
                with region as here:
                    self._vector(steps, None if has_all else vector.create_mask(self.masks, [left_over]), here)

    def _vector(self, steps: int, mask: ir.Value | None, index: IndexEmitter) -> None:
        loaded = [self._of_right(step, mask, index) for step in range(steps)]
        if steps > 1 and mask is None:
            # The next rows are too far away for the hardware prefetcher.
            for step in range(steps):
                prefetch(self._row_of_right(f"next{step}", index), NEAREST_CACHE, index)
        with loop("row", 0, symbol("rows"), 1, index) as here:
            # Two sums halve the dependency chain.
            sums = [self.nothing, self.nothing]
            for step in range(steps):
                at = symbol("row") * self.left_stride + symbol("step") + step
                factor = memref.load(strided_view(self.left, at, (), (), here), [])
                repeated = vector.BroadcastOp(self.vectors, factor).result
                sums[step % 2] = self.product.added(repeated, loaded[step], sums[step % 2])
            total = self.add(sums[0], sums[1]) if steps > 1 else sums[0]
            view = self._of_sums(here)
            self._store(self.add(self._load(view, here), total), view, here)

    def _of_right(self, step: int, mask: ir.Value | None, index: IndexEmitter) -> ir.Value:
        view = self._row_of_right(f"start{step}", index)
        if mask is None:
            return self._load(view, index)
        return vector.MaskedLoadOp(self.vectors, view, [index(0)], mask, self.nothing).result

    def _row_of_right(self, start: str, index: IndexEmitter) -> ir.Value:
        at = expr.add(symbol(start), symbol("first_column"), symbol("column"))
        return strided_view(self.right, at, (self.lanes,), (1,), index)

    def _of_sums(self, index: IndexEmitter) -> ir.Value:
        at = symbol("row") * self.sums_stride + symbol("column")
        return strided_view(self.sums, at, (self.lanes,), (1,), index)

    def _of_result(self, index: IndexEmitter) -> ir.Value:
        at = symbol("result_first") + symbol("row") * symbol("stride") + symbol("column")
        return strided_view(self.result, at, (self.lanes,), (1,), index)

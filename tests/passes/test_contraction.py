"""Which sums of products are contractions, which loops play which part, and how they are blocked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passes.cpu import contraction as strategy
from passes.cpu.blocking import PACK, READ, VECTORS_PER_TILE, choose_blocking, group_counts
from passes.cpu.machine import VectorUnit, vector_unit
from passes.loops.accesses import Access, Panels
from passes.loops.body import KernelBody
from passes.loops.contraction import (
    MIN_COLUMNS,
    MIN_DEPTH,
    MIN_ROWS,
    Contraction,
    is_exact_widening,
    match_contraction,
)
from passes.loops.domain import Domain, Loop
from passes.loops.index_space import IndexSpace
from passes.loops.scalar_dag import Interner
from tensorkiln import expr
from tensorkiln.build import Builder, Tensor, conv2d, einsum, matmul, pad, relu
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol
from tensorkiln.target import Target
from tests.passes.modules import bodies, machine, output


def match(kernel: KernelBody) -> Contraction | None:
    stage = kernel.stages[0]
    return match_contraction(stage.domain, stage.combine, stage.elements[0], kernel.nodes, kernel.space)


def product(
    b: Builder, subscripts: str, left: tuple[Dim, ...], right: tuple[Dim, ...], dtype: str = "float32"
) -> Tensor:
    return einsum(subscripts, b.input(dtype, left), b.input(dtype, right))


def matched(
    subscripts: str, left: tuple[Dim, ...], right: tuple[Dim, ...], dtype: str = "float32"
) -> Contraction | None:
    b = Builder("einsum")
    if any(not isinstance(extent, int) for extent in (*left, *right)):
        b.symbol("n", 1, 4096)
    (kernel,) = bodies(output(b, product(b, subscripts, left, right, dtype)))
    return match(kernel)


def extents(loops: tuple[Loop, ...]) -> list[Dim]:
    return [loop.extent for loop in loops]


def parts(found: Contraction | None) -> list[list[Dim]]:
    assert found is not None
    return [extents(loops) for loops in (found.batch, found.rows, found.columns, found.depth)]


def test_a_matrix_product_has_rows_columns_and_depth() -> None:
    assert parts(matched("mk,kn->mn", (32, 64), (64, 48))) == [[], [32], [48], [64]]


def test_the_columns_are_what_the_result_walks_innermost() -> None:
    found = matched("mk,kn->nm", (32, 64), (64, 48))
    assert parts(found) == [[], [48], [32], [64]]
    assert found is not None
    assert found.right.load.operand == 0
    assert found.left.load.operand == 1


@pytest.mark.parametrize("subscripts", ["mk,kn->mn", "mk,kn->nm"])
def test_left_has_the_rows_and_right_the_columns(subscripts: str) -> None:
    found = matched(subscripts, (32, 64), (64, 48))
    assert found is not None
    for access, own, other in ((found.left, found.rows, found.columns), (found.right, found.columns, found.rows)):
        names = expr.free_symbols(access.load.address)
        assert names >= {loop.name for loop in own}
        assert names.isdisjoint(loop.name for loop in other)


def test_loops_of_both_operands_are_the_batch() -> None:
    assert parts(matched("bmk,bkn->bmn", (5, 32, 64), (5, 64, 48))) == [[5], [32], [48], [64]]


def test_several_loops_may_play_one_part() -> None:
    assert parts(matched("abk,kcd->abcd", (4, 8, 64), (64, 6, 8))) == [[], [4, 8], [6, 8], [64]]


def test_symbolic_extents_match_by_their_bounds() -> None:
    assert parts(matched("mk,kn->mn", (symbol("n"), 64), (64, 48))) == [[], [symbol("n")], [48], [64]]


def test_a_convolution_matches_through_its_padding() -> None:
    b = Builder("conv")
    x, w = b.input("float32", (2, 8, 16, 16)), b.input("float32", (16, 8, 3, 3))
    kernels = bodies(output(b, conv2d(x, w, padding=1)))
    found = [contraction for kernel in kernels if kernel.stages and (contraction := match(kernel))]
    assert len(found) == 1
    conditioned = [access for access in (found[0].left, found[0].right) if access.load.conditions]
    assert len(conditioned) == 1


def refused(*tensors: Tensor) -> bool:
    return all(match(kernel) is None for kernel in bodies(output(tensors[0].builder, *tensors)))


def test_small_products_are_left_to_the_loops() -> None:
    assert matched("mk,kn->mn", (MIN_ROWS, MIN_DEPTH), (MIN_DEPTH, MIN_COLUMNS)) is not None
    assert matched("mk,kn->mn", (MIN_ROWS - 1, MIN_DEPTH), (MIN_DEPTH, MIN_COLUMNS)) is None
    assert matched("mk,kn->mn", (MIN_ROWS, MIN_DEPTH - 1), (MIN_DEPTH - 1, MIN_COLUMNS)) is None
    assert matched("mk,kn->mn", (MIN_ROWS, MIN_DEPTH), (MIN_DEPTH, MIN_COLUMNS - 1)) is None


@pytest.mark.parametrize(
    ("dtype", "wide"), [("int8", "int32"), ("uint16", "int32"), ("float16", "float32"), ("bfloat16", "float32")]
)
def test_narrow_factors_are_read_as_they_are_and_multiplied_wide(dtype: str, wide: str) -> None:
    b = Builder("narrow")
    x, w = b.input(dtype, (32, 64, 1)).expand(32, 64, 48), b.input(dtype, (1, 64, 48)).expand(32, 64, 48)
    (kernel,) = bodies(output(b, (x * w).sum(1)))
    found = match(kernel)
    assert found is not None
    assert found.dtype is DType(wide)
    assert [access.load.dtype for access in (found.left, found.right)] == [DType(dtype)] * 2
    # Floats are multiplied in their own dtype, as the graph says; the low bits of an integer product stay the same.
    assert found.rounding is (DType(dtype) if DType(dtype).is_float else None)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16"])
def test_a_conversion_of_a_factor_is_a_part_of_reading_it(dtype: str) -> None:
    b = Builder("converted")
    wide = "int32" if dtype == "int8" else "float32"
    x, w = b.input(dtype, (32, 64)).cast(wide), b.input(dtype, (64, 48)).cast(wide)
    (kernel,) = bodies(output(b, matmul(x, w)))
    found = match(kernel)
    assert found is not None
    assert (found.dtype, found.rounding, found.left.load.dtype) == (DType(wide), None, DType(dtype))


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "float16"), ("int32", "float32"), ("int8", "uint32"), ("bool", "int32"), ("float16", "int32")],
)
def test_a_conversion_that_may_change_a_value_is_none(source: str, target: str) -> None:
    assert not is_exact_widening(DType(source), DType(target))


def test_a_product_with_a_vector_is_refused() -> None:
    assert matched("mk,k->m", (32, 64), (64,)) is None


def test_a_sum_over_a_loop_of_one_operand_is_refused() -> None:
    b = Builder("one_sided")
    x, y = b.input("float32", (32, 64, 1)), b.input("float32", (1, 1, 48))
    assert refused((x.expand(32, 64, 48) * y.expand(32, 64, 48)).sum(1))


def test_a_sum_of_sums_is_refused() -> None:
    b = Builder("not_a_product")
    x, y = b.input("float32", (32, 64, 1)), b.input("float32", (1, 64, 48))
    assert refused((x.expand(32, 64, 48) + y.expand(32, 64, 48)).sum(1))


def test_a_maximum_of_products_is_refused() -> None:
    b = Builder("not_a_sum")
    x, y = b.input("float32", (32, 64, 1)), b.input("float32", (1, 64, 48))
    assert refused((x.expand(32, 64, 48) * y.expand(32, 64, 48)).max(1))


def by_hand(left: Dim, condition: Dim | None = None) -> Contraction | None:
    """Rows `i` by columns `j` over depth `k`, the left operand being read at `left` under `condition`."""
    nodes, space = Interner(), IndexSpace({})
    i, j, k = space.add("i", 32), space.add("j", 48), space.add("k", 64)
    nodes.dynamic["v0"] = nodes.load(DType.INT32, 2, i, ())
    loops = (Loop("i", 32), Loop("j", 48), Loop("k", 64, True))
    domain = Domain(loops, (i, j, k), expr.add(expr.mul(48, i), j))
    first = nodes.load(DType.FLOAT32, 0, left, () if condition is None else (condition,))
    second = nodes.load(DType.FLOAT32, 1, expr.add(expr.mul(48, k), j), ())
    kinds = ("mul", DType.FLOAT32, DType.FLOAT32)
    element = nodes.apply(DType.FLOAT32, "binop", kinds, first, second)
    return match_contraction(domain, "sum", element, nodes, space)


ROW, DEPTH = symbol("i"), symbol("k")


def test_reads_that_are_linear_under_linear_conditions_match() -> None:
    assert by_hand(64 * ROW + DEPTH) is not None
    assert by_hand(64 * ROW + DEPTH, ROW + DEPTH - 3) is not None


def test_an_operand_read_at_run_time_indices_is_refused() -> None:
    assert by_hand(64 * symbol("v0") + ROW + DEPTH) is None


def test_an_address_that_is_not_linear_is_refused() -> None:
    assert by_hand(expr.floordiv(64 * ROW + DEPTH, 3)) is None


def test_a_condition_on_a_remainder_is_refused() -> None:
    assert by_hand(64 * ROW + DEPTH, expr.floormod(ROW + DEPTH, 3) - 1) is None


def test_a_condition_that_is_not_linear_is_refused() -> None:
    b = Builder("wrapped")
    # Padded, then reshaped: the condition is on a remainder of two loops.
    x = pad(b.input("float32", (50, 40)), [(0, 0), (0, 8)]).reshape(48, 50).reshape(48, 50, 1)
    assert refused((x.expand(48, 50, 32) * b.input("float32", (1, 50, 32)).expand(48, 50, 32)).sum(1))


def test_the_strategy_takes_maps_behind_a_contraction_and_nothing_else() -> None:
    b = Builder("dense")
    x, w, bias = b.input("float32", (32, 64)), b.input("float32", (64, 48)), b.input("float32", (48,))
    (kernel,) = bodies(output(b, relu(matmul(x, w) + bias)))
    assert strategy.find(kernel) is not None
    other = Builder("sum")
    (kernel,) = bodies(output(other, other.input("float32", (32, 64)).sum(1)))
    assert strategy.find(kernel) is None


TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")
DTYPES = st.sampled_from([DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64])
UNITS = st.sampled_from([vector_unit(Target.parse(name)) for name in TARGETS])


def shaped(dtype: DType, rows: Dim, columns: Dim, depth: Dim, batch: Dim = 1) -> Contraction:
    load = Interner().load(DType.FLOAT32, 0, 0, ())
    access = Access(load, 0, ())
    loops = [(Loop(name, extent),) for name, extent in zip("brcd", (batch, rows, columns, depth), strict=True)]
    return Contraction(dtype, None, loops[0], loops[1], loops[2], loops[3], access, access)


EXTENT = st.one_of(st.integers(4, 40), st.integers(4, 3000))


@given(EXTENT, EXTENT, EXTENT, DTYPES, UNITS)
def test_a_register_tile_fits_in_the_registers(
    rows: int, columns: int, depth: int, dtype: DType, unit: VectorUnit
) -> None:
    blocking = choose_blocking(shaped(dtype, rows, columns, depth), unit)
    accumulators = blocking.tile_rows * VECTORS_PER_TILE
    assert accumulators + VECTORS_PER_TILE + 1 <= unit.registers
    assert blocking.lanes * dtype.bits == unit.bits
    assert blocking.tile_columns == blocking.lanes * VECTORS_PER_TILE


@given(EXTENT, EXTENT, EXTENT, DTYPES, UNITS)
def test_blocks_are_multiples_of_tiles_and_cover_the_result(
    rows: int, columns: int, depth: int, dtype: DType, unit: VectorUnit
) -> None:
    found = shaped(dtype, rows, columns, depth, 3)
    blocking = choose_blocking(found, unit)
    assert blocking.block_rows % blocking.tile_rows == 0
    assert blocking.block_columns % blocking.tile_columns == 0
    assert blocking.block_depth % blocking.lanes == 0
    batch, row_blocks, column_blocks = (expr.evaluate(count, {}) for count in group_counts(found, blocking))
    assert batch == 3
    assert (row_blocks - 1) * blocking.block_rows < rows <= row_blocks * blocking.block_rows
    assert (column_blocks - 1) * blocking.block_columns < columns <= column_blocks * blocking.block_columns


def test_long_packed_rows_are_split_before_few_columns() -> None:
    """Each block of columns reads all packed rows again, here 2 MB, and each block of rows packs the columns."""
    found = shaped(DType.FLOAT32, 1000, 169, 512)
    found = replace(found, left=replace(found.left, panels=Panels("r", 6, 6 * 512)))
    blocking = choose_blocking(found, VectorUnit(512, 32), vectors=4, again=(READ, PACK))
    assert group_counts(found, blocking) == (1, 4, 1)


@pytest.mark.parametrize(("rows", "columns", "batch", "groups"), [(3136, 64, 1, 12), (196, 32, 1, 4), (49, 224, 1, 4)])
def test_blocks_are_shared_evenly_by_two_and_four_threads(rows: int, columns: int, batch: int, groups: int) -> None:
    found = shaped(DType.FLOAT32, rows, columns, 576, batch)
    blocking = choose_blocking(found, VectorUnit(512, 32), again=(READ, READ), is_stored=True)
    assert math.prod(expr.evaluate(count, {}) for count in group_counts(found, blocking)) == groups


@given(DTYPES, UNITS)
def test_symbolic_rows_take_whole_blocks(dtype: DType, unit: VectorUnit) -> None:
    blocking = choose_blocking(shaped(dtype, symbol("n"), 64, 64), unit)
    assert blocking.block_rows % blocking.tile_rows == 0
    assert blocking == choose_blocking(shaped(dtype, symbol("n"), symbol("n"), 5000), unit)


def test_rows_fewer_than_a_tile_are_one_tile() -> None:
    blocking = choose_blocking(shaped(DType.FLOAT32, 5, 64, 64), VectorUnit(256, 16))
    assert (blocking.tile_rows, blocking.block_rows) == (5, 5)


@given(EXTENT, EXTENT, DTYPES, UNITS)
def test_blocks_of_rows_are_of_nearly_equal_size(rows: int, columns: int, dtype: DType, unit: VectorUnit) -> None:
    found = shaped(dtype, rows, columns, 64)
    blocking = choose_blocking(found, unit)
    count = expr.evaluate(group_counts(found, blocking)[1], {})
    assert count * blocking.block_rows - rows < count * blocking.tile_rows


@pytest.mark.parametrize(
    ("target", "unit"),
    [
        ("cpu:x86-64-v2", VectorUnit(128, 16, together=2)),
        ("cpu:x86-64-v3", VectorUnit(256, 16, together=2)),
        ("cpu:x86-64-v4", VectorUnit(512, 32, together=2, masked=1)),
        ("cpu:aarch64", VectorUnit(128, 32)),
    ],
)
def test_the_vectors_are_those_of_the_target(target: str, unit: VectorUnit) -> None:
    assert machine(target).vectors == unit

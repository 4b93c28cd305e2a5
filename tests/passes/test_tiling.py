"""How loops are split between work-groups and the code inside a row."""

from __future__ import annotations

import numpy as np
import pytest

from passes.loops.body import KernelBody
from passes.loops.collapse import collapse
from passes.loops.domain import extent_of
from passes.schedule.tiling import (
    CHUNK,
    COLUMN_CHUNK,
    GROUP_POINTS,
    LEAST_ACROSS,
    MIN_POINTS,
    ROW,
    TRANSPOSE_TILE,
    WHOLE,
    Rows,
    block_name,
    inner_loops,
    rows_candidates,
    rows_per_group,
    with_rows,
)
from tensorkiln import expr
from tensorkiln.build import Builder, flip, pad, softmax
from tensorkiln.expr import Dim, symbol
from tests.passes.modules import body, output

N = symbol("n")


def first_rows(kernel: KernelBody) -> Rows:
    """How rows are split where nothing is known of costs."""
    return next(iter(rows_candidates(kernel)))


def flipped(*shape: Dim) -> KernelBody:
    """A map whose loops do not merge: every other dimension is read backwards."""
    b = Builder("flipped")
    b.symbol("n", 1, 4096)
    axes = list(range(len(shape) - 2, -1, -2))
    return collapse(body(output(b, flip(b.input("float32", shape), axes))))


def transposed(*shape: Dim) -> KernelBody:
    b = Builder("transposed")
    b.symbol("n", 1, 4096)
    return collapse(body(output(b, -b.input("float32", shape).permute(*reversed(range(len(shape)))))))


def total(rows: int, columns: int, axis: int) -> KernelBody:
    b = Builder("sum")
    return collapse(body(output(b, b.input("float32", (rows, columns)).sum(axis))))


def test_the_fewest_inner_loops_that_make_a_row_long_enough() -> None:
    kernel = flipped(16, 8, MIN_POINTS)
    assert [loop.extent for loop in kernel.rows] == [16, 8, MIN_POINTS]
    assert first_rows(kernel) == (ROW, ROW, WHOLE)
    assert first_rows(flipped(16, 8, MIN_POINTS // 2)) == (ROW, WHOLE, WHOLE)


def test_a_small_map_is_one_row() -> None:
    assert first_rows(flipped(4, 5)) == (WHOLE, WHOLE)


def test_a_symbolic_extent_is_long_enough() -> None:
    assert first_rows(flipped(8, N)) == (ROW, WHOLE)


def test_a_long_single_loop_is_cut_in_pieces() -> None:
    b = Builder("long")
    kernel = collapse(body(output(b, -b.input("float32", (CHUNK * 4 + 5,)))))
    rows = first_rows(kernel)
    assert rows == (CHUNK,)
    cut = with_rows(kernel, rows)
    (block,), (piece,) = cut.rows, inner_loops(cut, cut.stages[0])
    assert (block.name, block.extent) == (block_name(kernel.rows[0]), 5)
    sizes = [expr.evaluate(piece.extent, {block.name: number}) for number in range(5)]
    assert sizes == [CHUNK] * 4 + [5]
    (store,) = cut.stages[0].stores
    assert store.operand == 1
    assert cut.stages[0].domain.address == CHUNK * symbol(block.name) + symbol(piece.name)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((100_000, 3), (CHUNK // 4, WHOLE)),
        ((N, 30), (CHUNK // 31, WHOLE)),
        ((7, CHUNK, 3), (ROW, CHUNK // 4, WHOLE)),
        ((7, 1024, 3), (ROW, WHOLE, WHOLE)),
    ],
)
def test_a_long_row_of_several_loops_is_cut_along_the_outermost(
    shape: tuple[Dim, ...], expected: tuple[int, ...]
) -> None:
    b = Builder("padded")
    b.symbol("n", 1, 1 << 20)
    kernel = collapse(body(output(b, pad(b.input("float32", shape), [(0, 1)] * len(shape)))))
    assert first_rows(kernel) == expected


@pytest.mark.parametrize("count", [1_000_000, N])
def test_pieces_of_a_long_map_are_shared_between_work_groups(count: Dim) -> None:
    b = Builder("long")
    b.symbol("n", 1, 1 << 20)
    kernel = collapse(body(output(b, -b.input("float32", (count,)))))
    assert rows_per_group(with_rows(kernel, first_rows(kernel))) == GROUP_POINTS // CHUNK


def test_a_loop_of_two_pieces_or_less_is_not_cut() -> None:
    b = Builder("short")
    assert first_rows(collapse(body(output(b, -b.input("float32", (2 * CHUNK,)))))) == (WHOLE,)


def test_a_transpose_is_cut_in_square_tiles() -> None:
    kernel = transposed(100, 3, 70)
    assert [loop.extent for loop in kernel.rows] == [70, 3, 100]
    rows = first_rows(kernel)
    assert rows == (TRANSPOSE_TILE, ROW, TRANSPOSE_TILE)
    cut = with_rows(kernel, rows)
    assert [loop.extent for loop in cut.rows] == [3, 3, 4]
    row, column = inner_loops(cut, cut.stages[0])
    corner = {loop.name: expr.evaluate(loop.extent, {}) - 1 for loop in cut.rows}
    assert [expr.evaluate(loop.extent, corner) for loop in (row, column)] == [70 - 64, 100 - 96]


@pytest.mark.parametrize("shape", [(100, LEAST_ACROSS - 1), (TRANSPOSE_TILE, 100)])
def test_a_small_transpose_is_not_cut(shape: tuple[int, int]) -> None:
    assert TRANSPOSE_TILE not in first_rows(transposed(*shape))


def test_every_point_of_cut_loops_is_visited_once() -> None:
    kernel = transposed(70, 40)
    cut = with_rows(kernel, first_rows(kernel))
    seen: list[int] = []
    for block in np.ndindex(*(expr.evaluate(loop.extent, {}) for loop in cut.rows)):
        env = dict(zip((loop.name for loop in cut.rows), block, strict=True))
        inner = inner_loops(cut, cut.stages[0])
        for place in np.ndindex(*(expr.evaluate(loop.extent, env) for loop in inner)):
            env |= dict(zip((loop.name for loop in inner), place, strict=True))
            seen.append(expr.evaluate(cut.stages[0].domain.address, env))
    assert sorted(seen) == list(range(70 * 40))


def test_a_sum_over_the_last_dimension_keeps_all_rows() -> None:
    assert first_rows(total(64, 500, 1)) == (ROW,)


def test_a_sum_over_rows_walks_along_the_columns() -> None:
    kernel = total(64, 500, 0)
    rows = first_rows(kernel)
    assert rows == (WHOLE,)
    walked = with_rows(kernel, rows)
    assert {(loop.extent, loop.is_reduction) for loop in inner_loops(walked, walked.stages[0])} == {
        (64, True),
        (500, False),
    }


def test_many_columns_are_cut_in_pieces() -> None:
    kernel = total(500, 5 * COLUMN_CHUNK + 1, 0)
    assert first_rows(kernel) == (COLUMN_CHUNK,)
    cut = with_rows(kernel, first_rows(kernel))
    assert extent_of(cut.rows) == 6
    (column,) = [loop for loop in inner_loops(cut, cut.stages[0]) if not loop.is_reduction]
    assert [expr.evaluate(column.extent, {cut.rows[0].name: block}) for block in (0, 5)] == [COLUMN_CHUNK, 1]


def test_a_softmax_keeps_its_rows() -> None:
    b = Builder("softmax")
    kernel = collapse(body(output(b, softmax(b.input("float32", (32, 100)), -1))))
    assert first_rows(kernel) == (ROW,)
    kept = with_rows(kernel, (ROW,))
    assert (kept.rows, kept.stages) == (kernel.rows, kernel.stages)


@pytest.mark.parametrize(("columns", "expected"), [(GROUP_POINTS * 2, 1), (GROUP_POINTS // 4, 4), (1000, 32)])
def test_a_group_takes_enough_rows_to_be_worth_starting(columns: int, expected: int) -> None:
    assert rows_per_group(total(64, columns, 1)) == expected


def test_a_row_of_one_point_fills_a_group_with_rows() -> None:
    assert rows_per_group(with_rows(flipped(4, 5), (ROW, ROW))) == GROUP_POINTS

"""How loops are split between work-groups and the code inside a row."""

from __future__ import annotations

import pytest

from passes.schedule.collapse import collapse
from passes.schedule.domain import extent_of
from passes.schedule.stages import KernelBody
from passes.schedule.tiling import (
    CHUNK,
    COLUMN_CHUNK,
    GROUP_POINTS,
    MIN_POINTS,
    Rows,
    choose_rows,
    inner_loops,
    rows_per_group,
    with_rows,
)
from tensorkiln import expr
from tensorkiln.build import Builder, softmax
from tensorkiln.expr import Dim, symbol
from tests.passes.modules import body, output

N = symbol("n")


def permuted(*shape: Dim) -> KernelBody:
    """A map whose loops do not merge."""
    b = Builder("permuted")
    if any(not isinstance(extent, int) for extent in shape):
        b.symbol("n", 1, 4096)
    return collapse(body(output(b, -b.input("float32", shape).permute(*reversed(range(len(shape)))))))


def total(rows: int, columns: int, axis: int) -> KernelBody:
    b = Builder("sum")
    return collapse(body(output(b, b.input("float32", (rows, columns)).sum(axis))))


def test_the_fewest_inner_loops_that_make_a_row_long_enough() -> None:
    kernel = permuted(MIN_POINTS, 8, 16)
    assert [loop.extent for loop in kernel.rows] == [16, 8, MIN_POINTS]
    assert choose_rows(kernel) == Rows(2, 0)
    assert choose_rows(permuted(MIN_POINTS // 2, 8, 16)) == Rows(1, 0)


def test_a_small_map_is_one_row() -> None:
    assert choose_rows(permuted(4, 5)) == Rows(0, 0)


def test_a_symbolic_extent_is_long_enough() -> None:
    assert choose_rows(permuted(N, 8)) == Rows(1, 0)


def test_a_long_single_loop_is_cut_in_pieces() -> None:
    b = Builder("long")
    kernel = collapse(body(output(b, -b.input("float32", (CHUNK * 4 + 5,)))))
    rows = choose_rows(kernel)
    assert rows == Rows(0, CHUNK)
    cut = with_rows(kernel, rows)
    (block,), (piece,) = cut.rows, inner_loops(cut, cut.stages[0])
    assert block.extent == 5
    sizes = [expr.evaluate(piece.extent, {block.name: number}) for number in range(5)]
    assert sizes == [CHUNK] * 4 + [5]
    (store,) = cut.stages[0].stores
    assert store.operand == 1
    assert cut.stages[0].domain.address == CHUNK * symbol(block.name) + symbol(piece.name)


def test_a_loop_of_two_pieces_or_less_is_not_cut() -> None:
    b = Builder("short")
    assert choose_rows(collapse(body(output(b, -b.input("float32", (2 * CHUNK,)))))) == Rows(0, 0)


def test_a_sum_over_the_last_dimension_keeps_all_rows() -> None:
    assert choose_rows(total(64, 500, 1)) == Rows(1, 0)


def test_a_sum_over_rows_walks_along_the_columns() -> None:
    kernel = total(500, 64, 0)
    rows = choose_rows(kernel)
    assert rows == Rows(0, 0)
    walked = with_rows(kernel, rows)
    assert [(loop.extent, loop.is_reduction) for loop in inner_loops(walked, walked.stages[0])] == [
        (64, False),
        (500, True),
    ]


def test_many_columns_are_cut_in_pieces() -> None:
    kernel = total(500, 5 * COLUMN_CHUNK + 1, 0)
    assert choose_rows(kernel) == Rows(0, COLUMN_CHUNK)
    cut = with_rows(kernel, choose_rows(kernel))
    assert extent_of(cut.rows) == 6
    column, depth = inner_loops(cut, cut.stages[0])
    assert depth.extent == 500
    assert [expr.evaluate(column.extent, {cut.rows[0].name: block}) for block in (0, 5)] == [COLUMN_CHUNK, 1]


def test_a_softmax_keeps_its_rows() -> None:
    b = Builder("softmax")
    kernel = collapse(body(output(b, softmax(b.input("float32", (32, 100)), -1))))
    assert choose_rows(kernel) == Rows(1, 0)
    assert with_rows(kernel, Rows(1, 0)) == kernel


@pytest.mark.parametrize(("columns", "expected"), [(GROUP_POINTS * 2, 1), (GROUP_POINTS // 4, 4), (1000, 32)])
def test_a_group_takes_enough_rows_to_be_worth_starting(columns: int, expected: int) -> None:
    assert rows_per_group(total(64, columns, 1)) == expected


def test_an_empty_row_counts_as_one_point() -> None:
    assert rows_per_group(with_rows(permuted(4, 5), Rows(2, 0))) == GROUP_POINTS

"""Which loops become one."""

from __future__ import annotations

import numpy as np

from passes.loops.accesses import loads
from passes.loops.body import KernelBody
from passes.loops.collapse import collapse
from tensorkiln.build import Builder, flip, pad, softmax
from tensorkiln.expr import Dim, symbol
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests.compiled import run
from tests.dialect.wire import inputs_of
from tests.passes.modules import body, output

N = symbol("n")


def loops(graph: Graph) -> list[tuple[list[Dim], list[bool]]]:
    """Extents, and which of them are reductions, of every stage after collapsing."""
    return _loops(collapse(body(graph)))


def _loops(kernel: KernelBody) -> list[tuple[list[Dim], list[bool]]]:
    return [
        ([loop.extent for loop in stage.domain.loops], [loop.is_reduction for loop in stage.domain.loops])
        for stage in kernel.stages
    ]


def test_contiguous_loops_become_one() -> None:
    b = Builder("contiguous")
    x, y = b.input("float32", (4, 5, 6)), b.input("float32", (4, 5, 6))
    assert loops(output(b, x + y)) == [([120], [False])]


def test_symbolic_loops_become_one() -> None:
    b = Builder("symbolic")
    n = b.symbol("n", 1, 64)
    assert loops(output(b, -b.input("float32", (4, n, 6)))) == [([24 * N], [False])]


def test_symbolic_loops_whose_extents_multiply_to_fewer_terms_become_one() -> None:
    b = Builder("squares")
    n = b.symbol("n", 2, 64)
    kernel = collapse(body(output(b, -b.input("float32", (3, n + 1, n - 1)))))
    assert _loops(kernel) == [([3 * N * N - 3], [False])]
    (stage,) = kernel.stages
    assert stage.domain.address == symbol(stage.domain.loops[0].name)
    assert [load.address for load in loads(stage.elements, kernel.nodes)] == [stage.domain.address]


def test_loops_across_a_mask_stay_apart() -> None:
    b = Builder("mask")
    x = b.input("float32", (4, 5, 6))
    assert loops(output(b, pad(x, [(0, 0), (1, 1), (0, 0)]))) == [([4, 7, 6], [False] * 3)]


def test_loops_beside_a_mask_become_one() -> None:
    b = Builder("mask")
    x = b.input("float32", (4, 5, 6, 7))
    assert loops(output(b, pad(x, [(1, 1), (0, 0), (0, 0), (0, 0)]))) == [([6, 210], [False] * 2)]


def test_loops_that_one_operand_permutes_stay_apart() -> None:
    b = Builder("permuted")
    x, y = b.input("float32", (4, 5, 6)), b.input("float32", (5, 4, 6))
    assert loops(output(b, x + y.permute(1, 0, 2))) == [([4, 5, 6], [False] * 3)]


def test_a_broadcast_of_leading_dimensions_leaves_the_trailing_ones_together() -> None:
    b = Builder("broadcast")
    x, y = b.input("float32", (4, 5, 6)), b.input("float32", (5, 6))
    assert loops(output(b, x + y)) == [([4, 30], [False] * 2)]


def test_a_flipped_loop_joins_no_other() -> None:
    b = Builder("flip")
    assert loops(output(b, flip(b.input("float32", (4, 5)), 1))) == [([4, 5], [False] * 2)]


def test_reversing_every_dimension_walks_as_one_loop() -> None:
    b = Builder("flip")
    assert loops(output(b, flip(b.input("float32", (4, 5))))) == [([20], [False])]


def test_reductions_merge_with_each_other_only() -> None:
    b = Builder("sum")
    assert loops(output(b, b.input("float32", (4, 5, 6, 7)).sum((2, 3)))) == [([20, 42], [False, True])]


def test_all_stages_share_the_merged_rows() -> None:
    b = Builder("softmax")
    kernel = collapse(body(output(b, softmax(b.input("float32", (4, 5, 100)), -1))))
    assert [loop.extent for loop in kernel.rows] == [20]
    assert {tuple(extents) for extents, _ in _loops(kernel)} == {(20, 100)}
    assert all(stage.domain.loops[0] == kernel.rows[0] for stage in kernel.stages)


def test_loops_that_cannot_merge_are_kept() -> None:
    b = Builder("permuted")
    kernel = body(output(b, -b.input("float32", (4, 5)).permute(1, 0)))
    after = collapse(kernel)
    assert after.stages == kernel.stages
    assert after.rows == kernel.rows


def test_merged_loops_compute_the_same() -> None:
    b = Builder("mixed")
    n = b.symbol("n", 0, 9)
    x, y = b.input("float32", (3, n, 4)), b.input("float32", (n, 4))
    graph = output(b, pad(x + y, [(1, 0), (0, 0), (0, 0)]), (x * y).sum((1, 2)))
    for size in (0, 1, 7):
        arrays = inputs_of(graph, {"n": size})
        for actual, expected in zip(run(graph, *arrays, n=size), evaluate(graph, *arrays, n=size), strict=True):
            assert np.array_equal(actual, expected)

"""Several reductions of a long row in one sweep over it: which share one, and what it is lowered to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from passes.loops.collapse import collapse
from passes.schedule.sweeps import sweeps_of
from tensorkiln.build import Builder, Tensor, argmax, argmin, equal, exp, var, where
from tests.filecheck import check_ir
from tests.passes.modules import after, bodies_of, output

Function = Callable[[Tensor], Tensor | tuple[Tensor, ...]]


def swept(function: Function, *shape: int | str) -> list[list[str]]:
    """The kinds of the reductions of each sweep."""
    b = Builder("sweeps")
    dims = [b.symbol(dim, 1, 1 << 20) if isinstance(dim, str) else dim for dim in shape]
    made = function(b.input("float32", dims))
    module = after("to-linalg", output(b, *(made if isinstance(made, tuple) else (made,))))
    found = (sweep for kernel in bodies_of(module) for sweep in sweeps_of(collapse(kernel)))
    return [[str(sweep.results[number].stage.combine) for number in sorted(sweep.results)] for sweep in found]


def squares_from(x: Tensor) -> Tensor:
    centre = x.sum(-1, keepdims=True) * 0.25 + 3
    return ((centre - x) * (centre - x)).sum(-1)


def exponentials(x: Tensor) -> tuple[Tensor, Tensor]:
    top = x.max(-1, keepdims=True)
    return top, exp(x - top).sum(-1)


def count_of_maxima(x: Tensor) -> Tensor:
    found = equal(x.max(-1, keepdims=True), x)
    return where(found, x.cast("int32"), 0).sum(-1)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (lambda x: var(x, -1), ["sum", "sum"]),
        (squares_from, ["sum", "sum"]),
        (exponentials, ["max", "sum"]),
        (lambda x: argmax(x, -1), ["max", "max"]),
        (lambda x: argmin(x, -1), ["max", "max"]),
        (lambda x: (x.sum(-1), x.max(-1), (x * x).sum(-1)), ["sum", "max", "sum"]),
        (lambda x: (var(x, -1), x.max(-1)), ["sum", "sum", "max"]),
    ],
)
@pytest.mark.parametrize("length", [8192, "n"])
def test_reductions_of_a_long_row_share_a_sweep(function: Function, kinds: list[str], length: int | str) -> None:
    assert swept(function, 4, length) == [kinds]


def test_a_sweep_is_one_loop_over_blocks_that_every_reduction_reads() -> None:
    b = Builder("variance")
    graph = output(b, var(b.input("float32", (16384,))))
    check_ir(
        after("realise", graph),
        """
        // CHECK: %[[BLOCKS:.*]] = arith.constant 4 : index
        // CHECK: scf.for %[[BLOCK:.*]] = %{{.*}} to %[[BLOCKS]]
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]} ins(%{{.*}} : memref<4096xf32,
        // CHECK: arith.addf %out, %in
        // CHECK: arith.divf {{.*}} : f64
        // CHECK: scf.if
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
        // CHECK: arith.maxnumf
        // CHECK: }
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]} ins(%{{.*}}, %{{.*}} : memref<4096xf32,
        // CHECK: arith.subf %in, %in_
        // CHECK: arith.mulf
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]} ins(%{{.*}}, %{{.*}} : memref<4096xf32,
        // CHECK: arith.subf %in, %in_
        // CHECK-NOT: linalg.generic
        """,
    )


def test_sweeps_need_a_running_maximum() -> None:
    b = Builder("argmax")
    graph = output(b, argmax(b.input("float32", (8192,))))
    check_ir(
        after("realise", graph),
        """
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
        // CHECK: scf.if
        // CHECK: } else {
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
        // CHECK: scf.if
        // CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
        // CHECK-NOT: linalg.generic
        """,
    )


def test_blocks_are_of_loops_of_known_size() -> None:
    assert swept(lambda x: (x.sum((1, 2)), (x * x).sum((1, 2))), 4, "n", 5) != []
    assert swept(lambda x: ((x * x.sum(1, keepdims=True)).sum((1, 2)), x.max((1, 2))), 4, 8192, "m") == []


def test_short_rows_are_reduced_one_reduction_after_the_other() -> None:
    assert swept(lambda x: var(x, -1), 4, 4096) == []


def test_reductions_of_different_rows_share_no_sweep() -> None:
    assert swept(lambda x: (x.sum(-1), x.max(0)), 8192, 8192) == []


def test_reductions_that_read_nothing_alike_share_no_sweep() -> None:
    b = Builder("apart")
    x, y = (b.input("float32", (4, 8192)) for _ in range(2))
    sums = x.sum(-1, keepdims=True)
    graph = output(b, sums, (y.sum(-1, keepdims=True) + sums).sum(0))
    assert all(not sweeps_of(collapse(kernel)) for kernel in bodies_of(after("to-linalg", graph)))


def fourth_powers(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdims=True)
    return (centred * centred * centred * centred).sum(-1)


def cold_exponentials(x: Tensor) -> Tensor:
    return exp((x - x.max(-1, keepdims=True)) * -1).sum(-1)


def below_another(x: Tensor) -> Tensor:
    return exp(x - x.sum(-1, keepdims=True)).sum(-1)


@pytest.mark.parametrize("function", [fourth_powers, cold_exponentials, below_another])
def test_a_reduction_without_a_law_waits_for_what_it_refers_to(function: Function) -> None:
    assert swept(function, 4, 8192) == []

"""How many threads a compiled kernel is given: what the compiler estimates, and what the runtime makes of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, exp, power, sin, softmax
from tensorkiln.graph import Graph
from tests.compiled import compiled, program
from tests.passes.modules import output

V4 = "cpu:x86-64-v4"


def scaled(b: Builder, size: int) -> Tensor:
    return b.input("float32", (size, size)) * 2.0 + 1.0


def normalised(b: Builder, size: int) -> Tensor:
    return softmax(b.input("float32", (size, size)))


def product(b: Builder, size: int) -> Tensor:
    return b.input("float32", (size, size)) @ b.input("float32", (size, size))


def made(make: Callable[[Builder, int], Tensor], size: int) -> Graph:
    b = Builder("work")
    return output(b, make(b, size))


@pytest.mark.parametrize(
    ("make", "size", "threads"),
    [
        *((scaled, size, 1) for size in (64, 256)),
        *((normalised, size, 1) for size in (64, 128)),
        *((product, 64, 1), (scaled, 1024, 2), (normalised, 512, 2), (product, 512, 2)),
    ],
)
def test_a_kernel_has_a_second_thread_where_it_takes_over_forty_microseconds(
    make: Callable[[Builder, int], Tensor], size: int, threads: int
) -> None:
    graph = made(make, size)
    arrays = [np.ones((size, size), np.float32) for _ in graph.input_vars]
    (item,) = program(compiled(graph), threads=2).profile(*arrays)
    assert item.threads == threads


def test_symbolic_sizes_have_as_many_threads_as_static_ones() -> None:
    b = Builder("work")
    n = b.symbol("n", 1, 4096)
    symbolic = program(compiled(output(b, softmax(b.input("float32", (n, n))))), threads=2)
    for size, threads in ((64, 1), (128, 1), (2048, 2)):
        (item,) = symbolic.profile(np.ones((size, size), np.float32), n=size)
        assert item.threads == threads


def operations(make: Callable[[Tensor], Tensor], dtype: str = "float32") -> int:
    """Of one element, as the schedule counts them."""
    b = Builder("operations")
    (analysis,) = compiled(output(b, make(b.input(dtype, (1000,)))), V4).program.schedule.analysis
    assert isinstance(analysis.flops, int)
    return analysis.flops // 1000


def test_an_operation_counts_as_the_additions_that_take_as_long() -> None:
    assert operations(lambda x: x + 1.0) == 1
    assert operations(lambda x: x + 1.0, "float64") == 2
    assert operations(lambda x: 1.0 / x) == 8
    assert operations(exp) == 21
    assert operations(sin) == 120
    assert operations(lambda x: power(x, x)) == 160
    assert operations(lambda x: power(x, 3.0)) == 8
    assert operations(lambda x: x % 7, "int32") > 40

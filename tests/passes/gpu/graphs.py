"""Graphs of one kernel each, and what the compiler makes of them for a GPU."""

from __future__ import annotations

from collections.abc import Callable

from passes.schedule.attach import kernel_functions, schedule_of
from tensorkiln.build import Builder, layer_norm, matmul, relu, scatter, softmax, transpose
from tensorkiln.graph import Graph
from tensorkiln.schedule import KernelItem
from tests.passes.modules import after, output

TARGET = "cuda:sm_90"


def added() -> Graph:
    b = Builder("added")
    return output(b, b.input("float32", (64, 1024)) * b.input("float32", (1024,)) + 1.0)


def added_symbolic() -> Graph:
    b = Builder("added")
    n = b.symbol("n", 1, 512)
    return output(b, b.input("float32", (n,)) + b.input("float32", (n,)))


def shuffled() -> Graph:
    b = Builder("shuffled")
    return output(b, transpose(b.input("float32", (40, 64))) + b.input("float32", (64, 40)))


def softmax_rows() -> Graph:
    b = Builder("softmax")
    return output(b, softmax(b.input("float32", (4096, 1024))))


def softmax_symbolic() -> Graph:
    b = Builder("softmax")
    n = b.symbol("n", 1, 4096)
    return output(b, softmax(b.input("float32", (n, n))))


def short_rows() -> Graph:
    b = Builder("short")
    return output(b, b.input("float32", (5000, 10)).sum(axis=1))


def columns() -> Graph:
    b = Builder("columns")
    return output(b, b.input("float32", (5000, 96)).sum(axis=0))


def normalised() -> Graph:
    b = Builder("normalised")
    x, scale, shift = b.input("float32", (64, 768)), b.input("float32", (768,)), b.input("float32", (768,))
    return output(b, layer_norm(x, -1, scale, shift))


def dense() -> Graph:
    b = Builder("dense")
    x, w, bias = b.input("float32", (200, 100)), b.input("float32", (100, 300)), b.input("float32", (300,))
    return output(b, relu(matmul(x, w) + bias))


def scattered() -> Graph:
    b = Builder("scatter")
    return output(b, scatter(b.input("int32", (4, 100)), b.input("bfloat16", (4, 100)), 1, (4, 160)))


def summed_rows() -> Graph:
    b = Builder("rows")
    indices, updates = b.input("int32", (5000, 1)), b.input("float32", (5000, 64))
    return output(b, scatter(indices.expand(5000, 64), updates, 0, (300, 64), reduction="add"))


GRAPHS: dict[str, Callable[[], Graph]] = {
    make.__name__: make
    for make in (
        added,
        added_symbolic,
        shuffled,
        softmax_rows,
        softmax_symbolic,
        short_rows,
        columns,
        normalised,
        dense,
        scattered,
        summed_rows,
    )
}


def scheduled(graph: Graph) -> tuple[str, KernelItem]:
    """`(strategy, schedule)` of the only kernel of a graph."""
    module = after("schedule", graph, TARGET)
    (function,) = kernel_functions(module).values()
    return schedule_of(function)

"""What a compiled program prepares: what follows from parameters alone, in kernels of its own, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln import build
from tensorkiln.build import Builder, Tensor, cat, maximum, sqrt, take
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, shared
from tests.emulated import TARGET, Emulation
from tests.filecheck import check_ir
from tests.passes.modules import output

Write = Callable[[Builder], tuple[Tensor, ...]]


def graph_of(write: Write) -> Graph:
    b = Builder("prepared")
    return output(b, *write(b))


def scaled(b: Builder) -> tuple[Tensor, ...]:
    x, weights = b.input("float32", (b.symbol("n", 1, 40), 24)), b.parameter("float32", (24, 16))
    scale, shift = b.parameter("float32", (16,)), b.parameter("float32", (16,))
    return (maximum((x @ (weights * scale)) + shift * 0.5, 0.0),)


def normalised(b: Builder) -> tuple[Tensor, ...]:
    x, mean = b.input("float32", (4, 32, 8)), b.parameter("float32", (32,))
    variance, gamma = b.parameter("float32", (32,)), b.parameter("float32", (32,))
    factor = (gamma / sqrt(variance + 1e-5)).reshape((32, 1))
    return (x * factor - (mean.reshape((32, 1)) * factor),)


def dequantised(b: Builder) -> tuple[Tensor, ...]:
    x, weights = b.input("float32", (6, 32)), b.parameter("int8", (32, 16))
    scale, zero = b.parameter("float32", (16,)), b.parameter("int8", (16,))
    return (x @ ((weights.cast("float32") - zero.cast("float32")) * scale),)


def gathered(b: Builder) -> tuple[Tensor, ...]:
    x, table, order = b.input("float32", (5, 8)), b.parameter("float32", (10, 8)), b.parameter("int32", (5,))
    return (x + take(table, order, 0) * 2.0,)


def joined(b: Builder) -> tuple[Tensor, ...]:
    """Both parts are computed in their place in the whole, which a call returns: nothing of it stays."""
    x, y = b.input("float32", (8, 16)), b.parameter("float32", (8, 16))
    weights = b.parameter("float32", (16, 16))
    return (cat([y @ weights, x @ weights], 0),)


def returned(b: Builder) -> tuple[Tensor, ...]:
    """What is prepared is a result, as it is and moved."""
    x, weights = b.input("float32", (4, 4)), b.parameter("float32", (4, 4))
    square = weights * weights
    return square, square.transpose(), x + square


def overwritten(b: Builder) -> tuple[Tensor, ...]:
    """What a call computes could be in place of what is prepared, if that were needed no more."""
    x, weights = b.input("float32", (6, 8)), b.parameter("float32", (6, 8))
    return (x + weights * 2.0,)


CASES: dict[str, tuple[Write, int, int]] = {
    # what is written, items that are prepared, items of a call
    "scaled": (scaled, 2, 1),
    "normalised": (normalised, 1, 1),
    "dequantised": (dequantised, 1, 1),
    "gathered": (gathered, 1, 1),
    "joined": (joined, 0, 2),
    "returned": (returned, 1, 1),
    "overwritten": (overwritten, 1, 1),
}


def arrays_for(graph: Graph, n: int) -> list[Any]:
    rng = np.random.default_rng(7)
    shapes = [
        tuple(n if not isinstance(dim, int) else dim for dim in graph.types[var].shape) for var in graph.input_vars
    ]
    kinds = [graph.types[var].dtype for var in graph.input_vars]
    return [
        rng.random(shape, np.float32) + 0.5 if kind is DType.FLOAT32 else rng.integers(0, 5, shape).astype(kind.numpy)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_program_with_bound_parameters_gives_what_the_reference_gives(name: str) -> None:
    graph = graph_of(CASES[name][0])
    symbols = dict.fromkeys(graph.symbols, 17)
    arrays = arrays_for(graph, 17)
    found = checked.run(shared(graph), *arrays, threads=2, **symbols)  # also with its parameters bound
    for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_items_that_follow_from_parameters_alone_are_prepared(name: str) -> None:
    write, prepared, at_call = CASES[name]
    program = shared(graph_of(write)).program
    assert len(program.prepare) == prepared
    assert len(program.schedule.items) == prepared + at_call


@pytest.mark.parametrize("name", ["scaled", "dequantised", "returned"])
def test_a_gpu_program_prepares_the_same(name: str) -> None:
    graph = graph_of(CASES[name][0])
    made = compiled(graph, TARGET, texts=["translate"])
    assert len(made.program.prepare) == CASES[name][1]
    symbols, arrays = dict.fromkeys(graph.symbols, 17), arrays_for(graph, 17)
    for one, other in zip(Emulation(made, arrays, symbols).run(), evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_form_kernels_marks_the_calls_that_are_prepared_and_has_them_first() -> None:
    text = compiled(graph_of(scaled), texts=["form-kernels"]).dumps["form-kernels"]
    check_ir(
        text,
        """
        // CHECK: func.func @graph(%{{.*}}: tensor<?x24xf32, {{.*}}>, %[[W:.*]]: tensor<24x16xf32> {kiln.parameter}
        // CHECK: %[[SCALED:.*]] = call @kernel_0(%[[W]], %{{.*}}) {{.*}}kiln.prepare
        // CHECK: %[[SHIFT:.*]] = call @kernel_1(%{{.*}}) {{.*}}kiln.prepare
        // CHECK-NOT: kiln.prepare
        // CHECK: call @kernel_2(%arg0, %[[SCALED]], %[[SHIFT]])
        """,
    )


def unprepared(write: Write) -> Compilation:
    made = compiled(graph_of(write))
    assert made.program.prepare == ()
    return made


def test_nothing_is_prepared_without_parameters() -> None:
    def write(b: Builder) -> tuple[Tensor, ...]:
        x, weights, scale = b.input("float32", (4, 8)), b.input("float32", (8, 8)), b.input("float32", (8,))
        return (x @ (weights * scale),)

    assert len(unprepared(write).program.kernels) == 2


def test_values_with_symbols_are_not_prepared() -> None:
    def of_its_size(b: Builder) -> tuple[Tensor, ...]:
        x, weights = b.input("float32", (b.symbol("n", 1, 9), 4)), b.parameter("float32", ("n", 4))
        return (x + weights.sum(0) * 2.0,)

    def of_its_value(b: Builder) -> tuple[Tensor, ...]:
        b.symbol("n", 1, 9)
        x, weights = b.input("float32", ("n", 4)), b.parameter("float32", (4,))
        return (x * sqrt(weights / b.symbol_value("n").cast("float32")),)

    unprepared(of_its_size)
    unprepared(of_its_value)


def test_moved_or_widened_parameters_are_not_prepared() -> None:
    def moved(b: Builder) -> tuple[Tensor, ...]:
        x, weights = b.input("float32", (4, 8)), b.parameter("float32", (16, 8))
        return (x @ weights.transpose(),)

    def widened(b: Builder) -> tuple[Tensor, ...]:
        x, weights = b.input("float32", (4, 8)), b.parameter("float16", (8, 16))
        return (x @ weights.cast("float32"),)

    assert len(unprepared(moved).program.kernels) == 1
    assert len(unprepared(widened).program.kernels) == 1


def test_values_far_larger_than_their_parameters_are_not_prepared() -> None:
    def write(b: Builder) -> tuple[Tensor, ...]:
        x, rows, columns = (
            b.input("float32", (512, 512)),
            b.parameter("float32", (512, 1)),
            b.parameter("float32", (512,)),
        )
        return (x + (rows + columns),)

    assert len(unprepared(write).program.kernels) == 1


def test_a_result_is_not_computed_in_place_of_what_is_prepared() -> None:
    program = compiled(graph_of(overwritten)).program
    (number,) = program.prepare
    kernel = program.kernels[number]
    (kept,) = (program.buffers[kernel.buffers[slot]] for slot in kernel.outs)
    assert kept.alias_group is None


def test_a_constant_that_a_loop_begins_with_is_part_of_prepared_values_too() -> None:
    b = Builder("counted")
    weights, x = b.parameter("float32", (4,)), b.input("float32", (4,))
    zero = build.zeros(b, (), "int32")
    table = build.zeros(b, (3, 4), "int32")

    def goes_on(turn: Tensor, *_: Tensor) -> Tensor:
        return turn < 3

    def body(turn: Tensor, found: Tensor, given: Tensor) -> list[Tensor]:
        here = build.equal(build.arange(turn.builder, 3, "int32").unsqueeze([1]), turn)
        return [turn + 1, build.where(here, given.unsqueeze([0]), found)]

    _, found = build.while_loop(goes_on, body, [zero, table], [(x * 2).cast("int32")], most=3)
    b.output(found, x * (weights + 1))
    graph = b.graph()
    arrays = [np.arange(4, dtype=np.float32) + place for place in range(2)]
    for one, other in zip(checked.run(compiled(graph), *arrays), evaluate(graph, *arrays), strict=True):
        np.testing.assert_array_equal(one, other)

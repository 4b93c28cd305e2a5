"""A product, what is computed of its rows, and a product of those: one kernel, as in attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln.build import Builder, Tensor, exp, exp2, relu, softmax, where
from tensorkiln.expr import evaluate as value
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, program, target
from tests.numerics.cases.turns import EXAMPLES
from tests.passes.modules import output
from tests.passes.test_prepare import arrays_for

Write = Callable[[Builder], Tensor]


def graph_of(write: Write) -> Graph:
    b = Builder("chain")
    return output(b, write(b))


def heads(b: Builder) -> Tensor:
    q, k, v = (b.input("float32", (3, 50, 16)) for _ in range(3))
    return softmax(q @ k.transpose() * 0.25) @ v


def alone(b: Builder) -> Tensor:
    """No batch, other sizes on either side, columns of more than a block."""
    q, k, v = b.input("float32", (70, 24)), b.input("float32", (300, 24)), b.input("float32", (300, 290))
    return softmax(q @ k.transpose()) @ v


def symbolic(b: Builder) -> Tensor:
    n, m = b.symbol("n", 1, 200), b.symbol("m", 1, 200)
    q, k, v = b.input("float32", (2, n, 8)), b.input("float32", (2, m, 8)), b.input("float32", (2, m, 12))
    return softmax(q @ k.transpose()) @ v


def masked(b: Builder) -> Tensor:
    """A mask that is read, and what follows is scaled and shifted by the epilogue of the second product."""
    q, k, v = (b.input("float32", (2, 40, 16)) for _ in range(3))
    mask, residual = b.input("float32", (40, 40)), b.input("float32", (2, 40, 16))
    scores = where(mask < 1.0, q @ k.transpose(), -1e9)
    return softmax(scores) @ v * 2.0 + residual


def grouped(b: Builder) -> Tensor:
    """Four heads of queries read two of keys."""
    q = b.input("float32", (2, 2, 33, 16))
    k, v = (b.input("float32", (2, 1, 47, 16)) for _ in range(2))
    return softmax(q @ k.transpose()) @ v


def double(b: Builder) -> Tensor:
    q, k, v = (b.input("float64", (20, 16)) for _ in range(3))
    return softmax(q @ k.transpose()) @ v


def long(b: Builder) -> Tensor:
    """Sums of more terms than a block has."""
    q, k, v = b.input("float32", (40, 8)), b.input("float32", (5000, 8)), b.input("float32", (5000, 8))
    return softmax(q @ k.transpose()) @ v


def centred(b: Builder) -> Tensor:
    """A layer whose rows are centred between its products."""
    x, w, u = b.input("float32", (60, 32)), b.input("float32", (32, 128)), b.input("float32", (128, 32))
    hidden = x @ w
    hidden = hidden - hidden.mean(-1, keepdims=True)
    return (hidden * hidden) @ u


CHAINS: dict[str, Write] = {
    each.__name__: each for each in (heads, alone, symbolic, masked, grouped, double, long, centred)
}


LEVELS = ("cpu:x86-64-v2", "cpu:x86-64-v3")
BY_TURNS = [
    (name, isa)
    for turn, name in enumerate(CHAINS)
    for isa in ("cpu:native", *(LEVELS if EXAMPLES > 1 else LEVELS[turn % 2 :][:1]))
]
"""Each for this machine and for one of the other levels, or with KILN_EXAMPLES for both."""


def strategies(made: Compilation) -> list[str]:
    text = made.dumps["schedule"]
    found = ("chain", "contraction", "loops", "scatter")
    return [name for name in found for _ in range(text.count(f'kiln.strategy = "{name}"'))]


@pytest.mark.parametrize(("name", "isa"), BY_TURNS)
def test_a_chain_is_one_kernel_that_gives_what_the_reference_gives(name: str, isa: str) -> None:
    graph = graph_of(CHAINS[name])
    made = compiled(graph, isa, texts=["schedule"])
    assert strategies(made) == ["chain"]
    for n, m in ((50, 50), (1, 200), (200, 1), (37, 130)) if graph.symbols else ((0, 0),):
        symbols = {"n": n, "m": m} if graph.symbols else {}
        rng = np.random.default_rng(n + m)
        shapes = [tuple(value(dim, symbols) for dim in graph.types[var].shape) for var in graph.input_vars]
        dtype = graph.types[graph.input_vars[0]].dtype.numpy
        arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
        found = checked.run(made, *arrays, threads=2, **symbols)
        for one, other in zip(found, evaluate(graph, *arrays, **symbols), strict=True):
            np.testing.assert_allclose(one, other, 2e-5, 2e-5 * max(1.0, float(np.abs(other).max())))


def unshared(b: Builder) -> Tensor:
    """Powers that are divided by their sum only after the second product."""
    q, k, v = (b.input("float32", (50, 16)) for _ in range(3))
    scores = q @ k.transpose()
    powers = exp2(scores - scores.max(-1, keepdims=True))
    return powers @ v


@pytest.mark.parametrize(("write", "drops"), [(heads, True), (unshared, False)])
@pytest.mark.parametrize("isa", ["cpu:x86-64-v2", "cpu:native"])
def test_shares_are_zero_instead_of_denormal_where_only_products_are_left(write: Write, drops: bool, isa: str) -> None:
    graph = graph_of(write)
    made = compiled(graph, isa, texts=["schedule", "realise"])
    assert strategies(made) == ["chain"]
    assert ("-1.260000e+02" in made.dumps["realise"]) == drops
    rng = np.random.default_rng(7)
    shapes = [tuple(value(dim, {}) for dim in graph.types[var].shape) for var in graph.input_vars]
    arrays = [(6 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]
    for one, other in zip(checked.run(made, *arrays), evaluate(graph, *arrays), strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 2e-4)


def gated(b: Builder) -> Tensor:
    """Half of what a product computes gates the other half."""
    x, w, u = b.input("float32", (60, 32)), b.input("float32", (32, 128)), b.input("float32", (64, 32))
    both = x @ w
    return (relu(both[:, :64]) * both[:, 64:]) @ u


def summed_in_pairs(b: Builder) -> Tensor:
    """Rows that are shorter in the second product."""
    x, w, u = b.input("float32", (60, 32)), b.input("float32", (32, 128)), b.input("float32", (64, 32))
    return (x @ w).reshape((60, 64, 2)).sum(-1) @ u


@pytest.mark.parametrize("write", [gated, summed_in_pairs])
def test_products_of_rows_of_other_lengths_are_kernels_of_their_own(write: Write) -> None:
    graph = graph_of(write)
    made = compiled(graph, texts=["schedule"])
    assert strategies(made) == ["contraction", "contraction", "loops"]
    rng = np.random.default_rng(1)
    shapes = [tuple(value(dim, {}) for dim in graph.types[var].shape) for var in graph.input_vars]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (found,), (wanted,) = checked.run(made, *arrays, threads=1), evaluate(graph, *arrays)
    np.testing.assert_allclose(found, wanted, 2e-5, 2e-5 * float(np.abs(wanted).max()))


def test_the_memory_of_attention_grows_with_the_sequence_and_not_with_its_square() -> None:
    b = Builder("attention")
    n = b.symbol("n", 1, 8192)
    q, k, v = (b.input("float32", (2, n, 64)) for _ in range(3))
    attention = program(compiled(output(b, softmax(q @ k.transpose()) @ v)))
    small, large = (attention.planned_peak_bytes(n=n) for n in (1024, 8192))
    assert large < 8.5 * small
    assert large < 16 << 20


def test_a_gpu_has_a_kernel_for_each_product() -> None:
    assert len(compiled(graph_of(heads), "cuda:sm_80").program.kernels) == 3


@pytest.mark.parametrize("options", [CompileOptions(fusion=False), CompileOptions(schedule="none")])
def test_a_second_opinion_has_no_chains(options: CompileOptions) -> None:
    assert len(compile_request(CompileRequest(graph_of(heads), target("cpu"), options)).program.kernels) > 2


def scores_returned(b: Builder) -> Tensor:
    q, k, v = (b.input("float32", (40, 16)) for _ in range(3))
    weights = softmax(q @ k.transpose())
    b.output(weights)
    return weights @ v


def read_by_another(b: Builder) -> Tensor:
    q, k, v = (b.input("float32", (40, 16)) for _ in range(3))
    scores = q @ k.transpose()
    b.output(exp(scores).sum(0))
    return softmax(scores) @ v


def across_rows(b: Builder) -> Tensor:
    """Normalised along the other axis: no row is whole by itself."""
    q, k, v = (b.input("float32", (40, 16)) for _ in range(3))
    return softmax(q @ k.transpose(), 0) @ v


def on_the_right(b: Builder) -> Tensor:
    q, k, v = (b.input("float32", (40, 16)) for _ in range(3))
    return v.transpose() @ softmax(q @ k.transpose())


def divided_last(b: Builder) -> Tensor:
    """What follows the second product needs the sum of the row, which is gone by then."""
    q, k, v = (b.input("float32", (40, 16)) for _ in range(3))
    weights = exp(q @ k.transpose())
    return (weights @ v) / weights.sum(-1, keepdims=True)


def with_weights(b: Builder) -> Tensor:
    """Weights are packed when they are bound, which a chain would do again for each block of rows."""
    x = b.input("float32", (b.symbol("n", 1, 40), 16)) @ b.input("float32", (16, 32))
    return softmax(x) @ b.parameter("float32", (32, 24))


def behind_weights(b: Builder) -> Tensor:
    x = b.input("float32", (40, 16)) @ b.parameter("float32", (16, 32))
    return softmax(x) @ b.input("float32", (32, 24))


OUTSIDE = [scores_returned, read_by_another, across_rows, on_the_right, divided_last, with_weights, behind_weights]


@pytest.mark.parametrize("write", OUTSIDE)
def test_products_outside_a_chain_have_kernels_of_their_own(write: Write) -> None:
    graph = graph_of(write)
    made = compiled(graph, texts=["schedule"])
    assert strategies(made).count("contraction") == 2
    symbols = dict.fromkeys(graph.symbols, 7)
    arrays = arrays_for(graph, 7)
    for one, other in zip(checked.run(made, *arrays, **symbols), evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 2e-5)

"""What is run on a GPU: graphs, and calls of each. Needs the SDK only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorkiln.build import (
    Builder,
    Tensor,
    argmax,
    cat,
    exp,
    gather,
    gelu,
    layer_norm,
    matmul,
    relu,
    scatter,
    sin,
    softmax,
    transpose,
    while_loop,
)
from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """A graph, the symbols of its calls, how close a result must be, and the integers below which inputs are drawn."""

    name: str
    build: Callable[[Builder], Tensor]
    calls: tuple[Symbols, ...] = ({},)
    rtol: float = 1e-5
    atol: float = 1e-6
    below: int = 50

    def graph(self) -> Graph:
        """The graph."""
        b = Builder(self.name)
        b.output(self.build(b))
        return b.graph()

    def inputs(self, graph: Graph, symbols: Symbols, seed: int) -> list[Array]:
        """Standard normal floats and small integers, from the seed."""
        generator = np.random.default_rng(seed)
        arrays: list[Array] = []
        for var in graph.input_vars:
            kind = graph.types[var]
            shape = tuple(evaluate(dim, symbols) for dim in kind.shape)
            drawn = (
                generator.standard_normal(shape) if kind.dtype.is_float else generator.integers(0, self.below, shape)
            )
            arrays.append(drawn.astype(kind.dtype.numpy))
        return arrays

    def bound(self, expected: Array) -> Array:
        """How far each element may be from what is expected."""
        return self.atol + self.rtol * np.abs(expected.astype(np.float64))


def _elementwise(b: Builder) -> Tensor:
    x, y = b.input("float32", (1000, 77)), b.input("float32", (1000, 77))
    return exp(x * 0.5) + sin(y) * x


def _broadcast(b: Builder) -> Tensor:
    return b.input("float32", (33, 1, 50)) + b.input("float32", (1, 40, 50)) * b.input("float32", (50,))


def _integers(b: Builder) -> Tensor:
    x, y = b.input("int32", (257, 31)), b.input("int32", (257, 31))
    return x * y - (x << 3)


def _transposed(b: Builder) -> Tensor:
    x = b.input("float32", (70, 90))
    return cat([transpose(x) * 2.0, b.input("float32", (90, 30))], axis=1)


def _row_sums(b: Builder) -> Tensor:
    return b.input("float32", (b.symbol("n", 1, 1 << 16), 300)).sum(axis=1)


def _column_sums(b: Builder) -> Tensor:
    return b.input("float32", (900, 40)).sum(axis=0)


def _long_sum(b: Builder) -> Tensor:
    return b.input("float32", (3, 200_000)).sum(axis=1)


def _maxima(b: Builder) -> Tensor:
    return argmax(b.input("float32", (50, 130)), axis=1)


def _softmax(b: Builder) -> Tensor:
    return softmax(b.input("float32", (b.symbol("n", 1, 1 << 16), b.symbol("m", 1, 1 << 13))))


def _layer_norm(b: Builder) -> Tensor:
    x = b.input("float32", (b.symbol("n", 1, 1 << 16), 768))
    return layer_norm(x, -1, b.input("float32", (768,)), b.input("float32", (768,)))


def _matmul(b: Builder) -> Tensor:
    return matmul(b.input("float32", (200, 130)), b.input("float32", (130, 170))) + b.input("float32", (170,))


def _symbolic_matmul(b: Builder) -> Tensor:
    n, m, k = (b.symbol(name, 1, 4096) for name in ("n", "m", "k"))
    return relu(matmul(b.input("float32", (n, k)), b.input("float32", (k, m))))


def _batched_matmul(b: Builder) -> Tensor:
    return matmul(b.input("float32", (5, 33, 40)), b.input("float32", (5, 40, 29)))


def _half_matmul(b: Builder) -> Tensor:
    return matmul(b.input("float16", (64, 96)), b.input("float16", (96, 80)))


def _large_matmul(dtype: str) -> Callable[[Builder], Tensor]:
    """In the largest tiles, which only a large result gets; of each row the greatest element, which is little."""
    return lambda b: matmul(b.input(dtype, (2050, 37)), b.input(dtype, (37, 2050))).max(axis=1)


def _half(b: Builder) -> Tensor:
    x = b.input("float16", (500, 30))
    return x * x + 0.5


def _bfloat(b: Builder) -> Tensor:
    return b.input("bfloat16", (500, 30)) + b.input("bfloat16", (500, 30))


def _scatter_column(b: Builder) -> Tensor:
    """One line, of as many updates as a whole grid has threads."""
    return scatter(b.input("int32", (4096, 1)), b.input("float32", (4096, 1)), 0, (4096, 1))


def _scatter(b: Builder) -> Tensor:
    return scatter(b.input("int32", (4, 300)), b.input("float32", (4, 300)), 1, (4, 50))


def _summed_rows(b: Builder) -> Tensor:
    """Rows that many updates are added to, as of a graph's neighbours."""
    indices, updates = b.input("int32", (300, 1)), b.input("float32", (300, 40))
    return scatter(indices.expand(300, 40), updates, 0, into=b.input("float32", (50, 40)), reduction="add")


def _greatest(b: Builder) -> Tensor:
    """The greatest update of each place along the last axis."""
    n = b.symbol("n", 1, 1000)
    return scatter(b.input("int32", (4, n)), b.input("float16", (4, n)), 1, (4, 50), reduction="max")


def _gather(b: Builder) -> Tensor:
    return gather(b.input("float32", (50, 20)), b.input("int32", (60, 20)), 0)


def _sorted(b: Builder) -> Tensor:
    x = b.input("float32", (8, 40)) * 2.0
    axis = {"name": "axis", "kind": "int", "value": 1}
    fields = {"op_name": "sort", "in_vars": [x.var], "attributes": [axis]}
    return b.append("custom", x.dtype, x.shape, **fields) + 1.0


def _network(b: Builder) -> Tensor:
    """Attention and a feed-forward layer over `n` tokens of width 64."""
    x = b.input("float32", (b.symbol("n", 1, 512), 64))
    keys, values, queries = (matmul(x, b.input("float32", (64, 64))) * 0.1 for _ in range(3))
    attended = matmul(softmax(matmul(queries, transpose(keys)) * 0.125), values)
    normed = layer_norm(x + attended, -1, b.input("float32", (64,)), b.input("float32", (64,)))
    return normed + matmul(gelu(matmul(normed, b.input("float32", (64, 256))) * 0.1), b.input("float32", (256, 64)))


def _loop(b: Builder) -> Tensor:
    """Square roots by turns, in which values change places, until they are good enough; a loop inside counts them."""
    x = b.input("float32", (b.symbol("n", 1, 100_000),)) ** 2 + 1.0
    zero = b.constant(0)

    def turn(root: Tensor, old: Tensor, turns: Tensor, x: Tensor) -> list[Tensor]:
        (count,) = while_loop(lambda i, turns: i < turns + 1, lambda i, _: i + 1, [turns.builder.constant(0)], [turns])
        return [(root + x / root) * 0.5, root, count]

    root, old, turns = while_loop(
        lambda root, old, turns, x: (abs(root * root - x).max() > 1e-2) & (turns < 30), turn, [x, x, zero], [x]
    )
    return root + (old - root) * 0.001 + turns.cast("float32")


SIZES = ({"n": 1}, {"n": 7}, {"n": 1000})

CASES = (
    Case("elementwise", _elementwise),
    Case("broadcast", _broadcast),
    Case("integers", _integers, rtol=0, atol=0),
    Case("transposed", _transposed, rtol=0, atol=0),
    Case("row_sums", _row_sums, SIZES, rtol=1e-4, atol=1e-4),
    Case("column_sums", _column_sums, rtol=1e-4, atol=1e-4),
    Case("long_sum", _long_sum, rtol=1e-3, atol=1e-2),
    Case("maxima", _maxima, rtol=0, atol=0),
    Case("softmax", _softmax, ({"n": 1, "m": 1}, {"n": 13, "m": 1000}, {"n": 300, "m": 77})),
    Case("layer_norm", _layer_norm, SIZES, rtol=1e-4, atol=1e-4),
    Case("matmul", _matmul, rtol=1e-4, atol=1e-4),
    Case(
        "symbolic_matmul",
        _symbolic_matmul,
        ({"n": 1, "m": 1, "k": 1}, {"n": 70, "m": 90, "k": 37}, {"n": 128, "m": 256, "k": 64}),
        rtol=1e-4,
        atol=1e-4,
    ),
    Case("batched_matmul", _batched_matmul, rtol=1e-4, atol=1e-4),
    Case("half_matmul", _half_matmul, rtol=1e-2, atol=5e-2),
    Case("half", _half, rtol=1e-3, atol=1e-3),
    Case("bfloat", _bfloat, rtol=1e-2, atol=1e-2),
    Case("scatter", _scatter, rtol=1e-5, atol=1e-5),
    Case("scatter_column", _scatter_column, rtol=1e-5, atol=1e-5),
    Case("summed_rows", _summed_rows, rtol=0, atol=0),
    Case("greatest", _greatest, SIZES, rtol=0, atol=0),
    Case("gather", _gather, rtol=0, atol=0),
    Case("sorted", _sorted),
    Case("loop", _loop, SIZES, rtol=1e-4, atol=1e-4),
    Case("network", _network, ({"n": 1}, {"n": 33}, {"n": 128}), rtol=1e-3, atol=1e-3),
)
"""What is compared with the reference evaluator."""

LARGE = (
    Case("large_matmul", _large_matmul("float32"), rtol=1e-5, atol=1e-5),
    Case("large_half_matmul", _large_matmul("float16"), rtol=1e-2, atol=5e-2),
)
"""The same, too large for the emulator."""

"""Graphs that once went wrong, or took for ever: each against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, cat, conv2d, einsum, flip, pad, relu, where
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol
from tensorkiln.expr import evaluate as value_of
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked, emulated

Run = Callable[..., tuple[Any, ...]]
Ready = Callable[[Graph], Run]


@pytest.fixture(params=[checked.ready, emulated.ready], ids=["cpu", "gpu"])
def ready(request: pytest.FixtureRequest) -> Ready:
    """What compiles a graph, on this machine or for an emulated GPU, and gives what runs it any number of times."""
    return request.param


@pytest.fixture
def run(ready: Ready) -> Run:
    """What compiles a graph and runs it."""
    return lambda graph, *arrays, **symbols: ready(graph)(*arrays, **symbols)


RNG = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("subscripts", "left", "right"),
    [
        ("mkb,knb->mnb", (4, 4, 2), (4, 8, 2)),
        ("kxb,kyb->xyb", (300, 40, 3), (300, 50, 3)),
        ("abc,acd->bda", (3, 24, 40), (3, 40, 30)),
    ],
)
def test_a_contraction_whose_last_loop_is_a_batch(
    run: Run, subscripts: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    b = Builder("batch")
    x, y = b.input("float32", left), b.input("float32", right)
    b.output(einsum(subscripts, x, y) * 2.0)
    arrays = draw(*left), draw(*right)
    (actual,) = run(b.graph(), *arrays)
    np.testing.assert_allclose(actual, 2 * np.einsum(subscripts, *arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["row", "group", "rows", "columns", "steps", "first_row", "r0", "R0", "v0", "l0_0"])
def test_a_symbol_may_be_called_like_a_loop(run: Run, name: str) -> None:
    b = Builder("names")
    n = b.symbol(name, 1, 500)
    x, w = b.input("float32", (n, 40)), b.input("float32", (40, 33))
    b.output((x @ w).sum(axis=1), x.max(axis=0))
    arrays = draw(70, 40), draw(40, 33)
    total, largest = run(b.graph(), *arrays, **{name: 70})
    np.testing.assert_allclose(total, (arrays[0] @ arrays[1]).sum(1), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(largest, arrays[0].max(0))


M, K = symbol("m"), symbol("k")
FACTORS = [
    (2, M + 1, M - 1),
    (M - 1, 3, M + 1),
    (K, M - 1, M + 1),
    (M + 1, K, M - 1, M + 1),
    (2, M - 2, M + 2, M * M + 4),
]
"""Shapes whose product has fewer terms than its factors let expect."""


def sized(builder: Builder, m: int, k: int) -> dict[str, int]:
    """Declares the symbols of `FACTORS`, to be bound to `m` and `k`."""
    builder.symbol("m", 2, 64)
    builder.symbol("k", 1, 9)
    return {"m": m, "k": k}


@pytest.mark.parametrize("shape", FACTORS, ids=str)
def test_loops_over_factors_that_cancel(ready: Ready, shape: tuple[Dim, ...]) -> None:
    b = Builder("squares")
    sized(b, 2, 1)
    x = b.input("float32", shape)
    b.output(-x, x.sum(axis=(len(shape) - 2, len(shape) - 1)), x * x.max(axis=0, keepdims=True))
    graph = b.graph()
    made = ready(graph)
    for symbols in ({"m": 2, "k": 1}, {"m": 5, "k": 3}):
        array = draw(*(value_of(extent, symbols) for extent in shape))
        for actual, expected in zip(made(array, **symbols), evaluate(graph, array, **symbols), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_contraction_over_factors_that_cancel(run: Run) -> None:
    b = Builder("squares")
    symbols = sized(b, 7, 3)
    x, w = b.input("float32", (M - 1, M + 1, 40)), b.input("float32", (M + 1, 40, K, M - 1))
    b.output(relu(einsum("abc,bcde->adbe", x, w)), einsum("abc,dcef->abdef", x, w))
    graph, arrays = b.graph(), (draw(6, 8, 40), draw(8, 40, 3, 6))
    for actual, expected in zip(run(graph, *arrays, **symbols), evaluate(graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("stride", [2, 3])
def test_a_strided_convolution_of_symbolic_size(run: Run, stride: int) -> None:
    b = Builder("downsample")
    n, h, w = (b.symbol(name, 1, 64) for name in ("n", "h", "w"))
    x, weights = b.input("float32", (n, 16, h, w)), b.input("float32", (24, 16, 3, 3))
    b.output(conv2d(x, weights, stride=stride, padding=1))
    graph, arrays = b.graph(), (draw(2, 16, 17, 12), draw(24, 16, 3, 3))
    symbols = {"n": 2, "h": 17, "w": 12}
    (actual,), (expected,) = run(graph, *arrays, **symbols), evaluate(graph, *arrays, **symbols)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


def test_a_padded_convolution_of_symbolic_height_and_few_channels(ready: Ready) -> None:
    # The address of a row is a quotient by the padded height, and the first element of each row is padding: where that
    # one is not loaded, the vector that begins with it has an address all the same.
    b = Builder("padded")
    h = b.symbol("h", 1, 512)
    x, weights = b.input("float32", (1, 3, h, 20)), b.input("float32", (2, 3, 3, 3))
    b.output(conv2d(x, weights, padding=1))
    graph = b.graph()
    made = ready(graph)
    for height in (1, 3, 8):
        arrays = draw(1, 3, height, 20), draw(2, 3, 3, 3)
        (actual,), (expected,) = made(*arrays, h=height), evaluate(graph, *arrays, h=height)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_scan_by_doubling_shifts_stays_small(run: Run) -> None:
    length = 1 << 12
    b = Builder("scan")
    total: Tensor = b.input("float32", (length,))
    step = 1
    while step < length:
        total = total + pad(total[: length - step], [(step, 0)])
        step *= 2
    b.output(total)
    x = draw(length)
    (actual,) = run(b.graph(), x)
    np.testing.assert_allclose(actual, np.cumsum(x, dtype=np.float64), atol=1e-2)


def test_a_cat_of_many_parts(run: Run) -> None:
    b = Builder("parts")
    parts = [b.input("float32", (1 + number % 3, 5)) for number in range(200)]
    b.output(cat(parts, 0))
    arrays = [draw(1 + number % 3, 5) for number in range(200)]
    (actual,) = run(b.graph(), *arrays)
    np.testing.assert_array_equal(actual, np.concatenate(arrays))


def test_several_maps_of_many_short_rows(run: Run) -> None:
    b = Builder("short_rows")
    x = pad(b.input("float32", (30_001, 3)), [(1, 0), (0, 1)])
    y = relu(x * 0.5)
    b.output(y, flip(y * 2.0 + x, [1]), y.cast("float64"))
    image = draw(30_001, 3)
    for actual, expected in zip(run(b.graph(), image), evaluate(b.graph(), image), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_products_of_halves_overflow_before_they_are_summed(run: Run) -> None:
    b = Builder("halves")
    x, y = b.input("float16", (20, 30, 1)).expand(20, 30, 17), b.input("float16", (1, 30, 17)).expand(20, 30, 17)
    b.output((x * y).sum(1))
    arrays = [(draw(*shape) * 120).astype(np.float16) for shape in ((20, 30, 1), (1, 30, 17))]
    (expected,) = evaluate(b.graph(), *arrays)
    assert np.isinf(expected).any()
    assert np.isfinite(expected).any()
    (actual,) = run(b.graph(), *arrays)
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2)


def test_a_choice_between_narrow_floats_moves_their_bits(run: Run) -> None:
    b = Builder("where")
    condition, x, y = b.input("bool", ()), b.input("bfloat16", ()), b.input("bfloat16", (1, 2))
    b.output(where(condition, x, y))
    bfloat16 = DType.BFLOAT16.numpy
    arrays = np.array(True), np.array(-0.0, bfloat16), np.array([[0.7, 2.6]], bfloat16)
    (actual,) = run(b.graph(), *arrays)
    np.testing.assert_array_equal(actual.view(np.uint16), [[0x8000, 0x8000]])


def test_the_products_of_a_contraction_are_rounded_with_their_sum(run: Run) -> None:
    shapes = {"dtype": "bfloat16", "shape": [4]}
    graph = Graph.model_validate(
        {
            "schema": 1,
            "nodes": [
                {"node": "placeholder", "out_var": 0, **shapes},
                {"node": "placeholder", "out_var": 1, **shapes},
                {
                    "node": "contract",
                    "in_vars": [0, 1],
                    "contraction_axes": [[0, 0]],
                    "out_var": 2,
                    "dtype": "bfloat16",
                },
            ],
            "input_vars": [0, 1],
            "output_vars": [2],
        }
    )
    left, right = ([2.875, 1.125, 0.125, -1.875], [-1.5, -3.75, -3.5, -3.875])
    (actual,) = run(graph, *(np.array(each, DType.BFLOAT16.numpy) for each in (left, right)))
    assert float(actual) == -1.703125


WORDS = np.array([0x04030201, 0x80FF0700, 0x00000100, 0xFFFFFFFF], np.uint32)


def view_of(out: int, of: int, dtype: str, size: int | str, offset: int = 0) -> dict[str, Any]:
    return {"node": "buffer_view", "buffer_var": of, "size": size, "offset": offset, "dtype": dtype, "out_var": out}


def graph_of_words(nodes: list[dict[str, Any]], outputs: list[int], **more: Any) -> Graph:
    words = {"node": "placeholder", "out_var": 0, "dtype": "uint32", "shape": [4]}
    return Graph.model_validate(
        {"schema": 1, "nodes": [words, *nodes], "input_vars": [0], "output_vars": outputs, **more}
    )


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([view_of(1, 0, "bool", 16), view_of(2, 1, "int8", 16)], id="int8"),
        pytest.param([view_of(1, 0, "bool", 16), view_of(2, 1, "uint16", 4, 6)], id="a wider one"),
        pytest.param([view_of(1, 0, "bool", 8, 2), view_of(2, 1, "uint8", 5, 3)], id="from the middle of a word"),
        pytest.param(
            [view_of(3, 0, "bool", 12, 1), view_of(1, 3, "bool", 9, 2), view_of(2, 1, "uint8", 6, 1)], id="bools"
        ),
        pytest.param(
            [view_of(3, 0, "int16", 6, 1), view_of(1, 3, "bool", 9, 1), view_of(2, 1, "uint32", 2)], id="through int16"
        ),
    ],
)
def test_a_view_of_a_bool_view_has_the_bytes_that_were_stored(run: Run, nodes: list[dict[str, Any]]) -> None:
    graph = graph_of_words(nodes, [2, 1])
    seen = run(graph, WORDS)
    for actual, expected in zip(seen, evaluate(graph, WORDS), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    assert seen[0].astype(np.int64).max() > 1


def test_so_it_has_after_an_assignment_and_with_a_symbol(ready: Ready) -> None:
    nodes = [
        view_of(1, 0, "bool", "n", 1),
        view_of(2, 1, "int8", "n"),
        {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "dtype": "uint32", "out_var": 3},
        {"node": "assign", "target_var": 0, "updates": [[3, 0, None]], "dtype": "uint32", "out_var": 4},
        {"node": "unary", "op": "neg", "in_var": 2, "dtype": "int8", "out_var": 5},
    ]
    graph = graph_of_words(nodes, [5, 2], symbolic_vars=[{"name": "n", "min_val": 1, "max_val": 12}])
    made = ready(graph)
    for n in (1, 6, 12):
        for actual, expected in zip(made(WORDS, n=n), evaluate(graph, WORDS, n=n), strict=True):
            np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [[3, 0], [0, 3], [0, 0]])
def test_empty_values_join_along_any_axis(run: Run, shape: list[int], axis: int) -> None:
    x = {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": shape}
    joined = {"node": "cat", "in_vars": [0, 0, 0], "axis": axis, "out_var": 1, "dtype": "float32"}
    graph = Graph.model_validate({"schema": 1, "nodes": [x, joined], "input_vars": [0], "output_vars": [1]})
    empty = np.zeros(shape, np.float32)
    (actual,), (expected,) = run(graph, empty), evaluate(graph, empty)
    np.testing.assert_array_equal(actual, expected, strict=True)

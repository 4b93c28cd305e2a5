"""One spelling of a graph: the same for what is written in several ways, and the same numbers bit for bit."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln import reference
from tensorkiln.build import Builder, Tensor, max_pool, maximum, minimum
from tensorkiln.build.windows import axis_windows
from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.canonical import one_spelling as spelling_module
from tensorkiln.canonical.one_spelling import one_spelling
from tensorkiln.graph import Graph
from tests.contract.random_graphs import random_graph
from tests.contract.wire import accept
from tests.fuzz.families import FAMILIES, graphs
from tests.fuzz.values import arrays_for

Array = np.ndarray[Any, Any]
EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e-42, 3.4e38, -2.5], np.float32)


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are equal bit for bit, but for which NaN one is."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return one.tobytes() == other.tobytes()
    is_nan = np.isnan(one)
    return np.array_equal(is_nan, np.isnan(other)) and (
        np.where(is_nan, 0, one).tobytes() == np.where(is_nan, 0, other).tobytes()
    )


def require_same(graph: Graph, arrays: list[Array], symbols: dict[str, int]) -> Graph:
    """The one spelling of a graph, once it has computed the same from the same."""
    spelled = one_spelling(graph)
    assert (spelled.input_vars, spelled.output_vars) == (graph.input_vars, graph.output_vars)
    assert spelled.parameter_vars == graph.parameter_vars
    assert [spelled.types[var] for var in (*graph.input_vars, *graph.output_vars)] == [
        graph.types[var] for var in (*graph.input_vars, *graph.output_vars)
    ]
    with np.errstate(all="ignore"):
        before = reference.evaluate(graph, *arrays, **symbols)
        after = reference.evaluate(spelled, *arrays, **symbols)
    assert all(same_bits(np.asarray(one), np.asarray(other)) for one, other in zip(before, after, strict=True))
    assert one_spelling(spelled) == spelled
    return spelled


def wordy(random: Random, dtype: str, *, is_symbolic: bool) -> Graph:
    """A graph of `dtype` in which much is written in more words than are needed."""
    b = Builder("wordy")
    rows = b.symbol("n", 1, 5) if is_symbolic else 3
    values = [b.input(dtype, (rows, 4)), b.input(dtype, (rows, 4)), b.parameter(dtype, (rows, 4))]
    for _ in range(random.randint(4, 14)):
        x, y = random.choice(values), random.choice(values)
        values.append(_step(random, b, x, y, dtype))
    b.output(*random.sample(values[3:], random.randint(1, 3)))
    return b.graph()


def _step(random: Random, b: Builder, x: Tensor, y: Tensor, dtype: str) -> Tensor:
    rows, columns = x.shape
    least: Any = -np.inf if dtype == "float32" else int(np.iinfo(dtype).min)
    match random.randrange(12):
        case 0:
            return x.transpose().transpose()
        case 1:
            return x.reshape(columns, rows, 1).reshape(rows, columns)
        case 2:
            return x.unsqueeze(0).expand((2, rows, columns)).max([0]) * 1
        case 3:
            return 1 * x
        case 4:
            return x + 0
        case 5:
            return x - 0
        case 6:
            return maximum(x, least)
        case 7:
            return x + y if random.random() < 0.5 else y + x
        case 8:
            return x * y if random.random() < 0.5 else y * x
        case 9:
            return maximum(x, y) - minimum(y, x)
        case 10:
            return x - x.sum([1]).reshape(rows, 1)
        case _:
            return x - x.max([1], True).expand((rows, columns))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["float32", "int32", "uint8"]), st.booleans())
def test_longer_spellings_compute_the_same_bits(seed: int, dtype: str, is_symbolic: bool) -> None:
    graph = wordy(Random(seed), dtype, is_symbolic=is_symbolic)
    generator, symbols = np.random.default_rng(seed), {"n": 1 + seed % 5} if is_symbolic else {}
    shape = (symbols.get("n", 3), 4)
    drawn = [generator.choice(EDGES, shape) for _ in range(3)]
    arrays = drawn if dtype == "float32" else [generator.integers(0, 256, shape).astype(dtype) for _ in range(3)]
    require_same(graph, arrays, symbols)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)).flatmap(graphs))
def test_composed_graphs_are_the_same_bit_for_bit(case: Any) -> None:
    require_same(case.graph, list(arrays_for(case.graph, case.symbols, case.seed)), case.symbols)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_a_graph_that_writes_to_storage_is_left_as_it_is(seed: int) -> None:
    graph = accept(random_graph(Random(seed)))
    if any(node.node in ("assign", "buffer", "buffer_view") for node in graph.nodes):
        assert one_spelling(graph) is graph


def spelled(*write: Any) -> set[str]:
    """The digests of what several functions write of x and y, 2 by 3, by 4."""
    digests: set[str] = set()
    for each in write:
        b = Builder("spelled")
        x, y = b.input("float32", (2, 3, 4)), b.input("float32", (2, 3, 4))
        b.output(each(x, y) - y)
        graph = b.graph()
        arrays = [np.random.default_rng(seed).choice(EDGES, (2, 3, 4)) for seed in (1, 2)]
        digests.add(graph_digest(canonicalize(require_same(graph, arrays, {}))))
    return digests


@pytest.mark.parametrize(
    "ways",
    [
        [
            lambda x, y: x,
            lambda x, y: x.permute((1, 0, 2)).permute((1, 0, 2)),
            lambda x, y: x.reshape(24).reshape(2, 3, 4),
        ],
        [lambda x, y: x, lambda x, y: x * 1.0, lambda x, y: 1.0 * x, lambda x, y: x / 1.0],
        [lambda x, y: x, lambda x, y: maximum(x, -np.inf), lambda x, y: minimum(np.inf, x)],
        [lambda x, y: x + y, lambda x, y: y + x],
        [lambda x, y: x * (x + y), lambda x, y: (y + x) * x],
        [lambda x, y: maximum(x, y), lambda x, y: maximum(y, x)],
        [lambda x, y: x.sum([2], True) + y, lambda x, y: y + x.sum([2]).reshape(2, 3, 1)],
        [lambda x, y: (x + 1) * (x + 1), lambda x, y: (lambda z: z * z)(x + 1)],
        [
            lambda x, y: maximum(x.permute((2, 0, 1)).permute((2, 0, 1)), 0.5).permute((2, 0, 1)),
            lambda x, y: maximum(x.permute((1, 2, 0)), 0.5).permute((2, 0, 1)),
        ],
    ],
)
def test_several_ways_to_write_it_meet(ways: list[Any]) -> None:
    assert len(spelled(*ways)) == 1


def test_different_graphs_have_different_spellings() -> None:
    ways = [
        lambda x, y: x,
        lambda x, y: x + 0.0,
        lambda x, y: x * -1.0,
        lambda x, y: 1.0 / x,
        lambda x, y: y - x,
        lambda x, y: x - y,
        lambda x, y: maximum(x, np.inf),
        lambda x, y: maximum(x, 0.0),
        lambda x, y: maximum(x, -0.0),
    ]
    assert len(spelled(*ways)) == len(ways)


def test_windows_that_are_those_of_another_pooling_are_read_twice() -> None:
    b = Builder("windows")
    x = b.input("float32", (1, 1, 6, 6))
    b.output(max_pool(x, (3, 1), 1, rank=2), axis_windows(x, 2, 3).max([-1]))
    graph = b.graph()
    spelled = require_same(graph, [np.random.default_rng(3).choice(EDGES, (1, 1, 6, 6))], {})
    assert sum(node.node == "view" for node in spelled.nodes) == 1


def test_a_spelling_beyond_the_limit_of_nodes_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder("rows")
    x, w = b.input("float32", (2, 3, 4)), b.parameter("float32", (4, 5))
    rows = x.reshape(6, 4)
    b.output((rows @ w).exp(), rows.exp())
    graph = b.graph()
    longer = len(one_spelling(graph).nodes)
    assert longer > len(graph.nodes)
    monkeypatch.setattr(spelling_module, "MAX_NODES", longer - 1)
    assert one_spelling(graph) is graph

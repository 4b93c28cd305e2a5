"""Rows of large results, which are computed in a cache and copied past it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from passes.cpu import staged_rows
from tensorkiln.build import Builder, Tensor, cat, layer_norm, pad, permute, relu, softmax, take
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled, program, proven, runs_here
from tests.passes.modules import after, output

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"]
LARGE = 4096
Shapes = Sequence[tuple[str, tuple[int, ...]]]


@pytest.fixture(name="large")
def _large(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the bytes of a large result."""
    return lambda size: monkeypatch.setattr(staged_rows, "LARGE", size)


def graph_of(function: Callable[..., Tensor], inputs: Shapes) -> Graph:
    b = Builder("staged")
    return output(b, function(*(b.input(dtype, shape) for dtype, shape in inputs)))


def arrays_of(inputs: Sequence[tuple[str, tuple[int, ...]]]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(len(inputs))
    return [rng.integers(0, 60, shape).astype(DType(dtype).numpy) for dtype, shape in inputs]


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


CASES: dict[str, tuple[Callable[..., Tensor], Shapes]] = {
    "one loop": (added, [("float32", (5003,))] * 2),
    "one loop of whole vectors": (added, [("float32", (8192,))] * 2),
    "rows": (added, [("float32", (7, 1001)), ("float32", (1001,))]),
    "rows of rows": (added, [("int32", (3, 5, 401)), ("int32", (5, 1))]),
    "doubles": (added, [("float64", (5, 333)), ("float64", (5, 1))]),
    "bytes": (added, [("int8", (5, 3333)), ("int8", (5, 1))]),
    "flags": (lambda x, y: x < y, [("float32", (5, 3333)), ("float32", (5, 1))]),
    "halves": (added, [("float16", (5, 1333)), ("float16", (1333,))]),
    "bfloat16": (added, [("bfloat16", (5, 1333)), ("bfloat16", (1333,))]),
    "gathered rows": (take, [("float32", (60, 16)), ("int32", (700,))]),
    "gathered pairs": (take, [("float32", (60, 2)), ("int32", (1703,))]),
    "padded rows": (lambda x: pad(x, [(1, 2), (3, 4)]) * 2.0, [("float32", (7, 1001))]),
    "joined rows": (lambda x, y: relu(cat([x, y], 1)), [("float32", (7, 501)), ("float32", (7, 611))]),
    "transposed": (lambda x: relu(permute(x, (1, 0, 2))), [("float32", (7, 9, 301))]),
    "layer norm": (lambda x: layer_norm(x, -1), [("float32", (9, 301))]),
    "layer norm whose last stage requests the next row": (lambda x: layer_norm(x, -1), [("float32", (600, 1024))]),
    "softmax": (softmax, [("float32", (9, 301))]),
    "softmax of rows together": (softmax, [("float32", (64, 1024))]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_staged_rows_have_the_bits_of_direct_ones(case: str, target: str, large: Callable[[int], None]) -> None:
    function, inputs = CASES[case]
    graph = graph_of(function, inputs)
    direct = compiled(graph, target)
    large(LARGE)
    staged = proven(graph, target, texts=("realise",))
    assert ("call @past_" in staged.dumps["realise"]) == (target != "cpu:x86-64-v2")
    if not runs_here(target):
        pytest.skip(f"this processor lacks instructions of {target}")
    arrays = arrays_of(inputs)
    (expected,) = program(direct)(*arrays)
    (result,) = checked.run(staged, *arrays, threads=2)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("least", [0, 12])
def test_symbolic_results_are_staged_if_they_are_always_large(least: int, large: Callable[[int], None]) -> None:
    b = Builder("staged")
    n = b.symbol("n", least, 1 << 20)
    x = b.input("float32", (n, 300))
    graph = output(b, relu(x - 30.0))
    direct = program(compiled(graph))
    large(12 * 300 * 4)
    staged = proven(graph, texts=("realise",))
    assert ("nontemporal" in staged.dumps["realise"]) == (least == 12)
    for size in (12, 15, 64):
        arrays = arrays_of([("float32", (size, 300))])
        (result,) = checked.run(staged, *arrays, threads=2, n=size)
        assert result.tobytes() == direct(*arrays, n=size)[0].tobytes()


LOOKUPS: dict[str, tuple[Callable[..., Tensor], Sequence[tuple[str, tuple[int | str, ...]]]]] = {
    "rows": (take, [("float32", (60, 16)), ("int32", ("n",))]),
    "long rows of a wide type": (take, [("float64", (60, 301)), ("int64", ("n",))]),
    "rows of halves in a row": (take, [("float16", (60, 7)), ("int32", ("n", 90))]),
    "rows with others added": (
        lambda x, i, y: take(x, i) + y,
        [("float32", (60, 300)), ("int32", ("n",)), ("float32", (300,))],
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", LOOKUPS)
def test_lookups_are_staged_at_calls_with_large_results(case: str, target: str, large: Callable[[int], None]) -> None:
    function, inputs = LOOKUPS[case]
    b = Builder("staged")
    b.symbol("n", 0, 1 << 20)
    graph = output(b, function(*(b.input(dtype, shape) for dtype, shape in inputs)))
    direct = program(compiled(graph, target)) if runs_here(target) else None
    large(100_000)
    staged = proven(graph, target, texts=("realise",))
    assert ("call @past_" in staged.dumps["realise"]) == (target != "cpu:x86-64-v2")
    if direct is None:
        pytest.skip(f"this processor lacks instructions of {target}")
    for n in (0, 1, 7, 40, 83, 84, 130, 1562, 1563, 2001):
        sizes = [(dtype, tuple(n if isinstance(size, str) else size for size in shape)) for dtype, shape in inputs]
        arrays = arrays_of(sizes)
        (result,) = checked.run(staged, *arrays, threads=2, n=n)
        assert result.tobytes() == direct(*arrays, n=n)[0].tobytes()


def test_two_lookups_of_a_map_are_both_staged(large: Callable[[int], None]) -> None:
    b = Builder("staged")
    x, indices = b.input("float32", (60,)), b.input("int32", (b.symbol("n", 0, 1 << 20),))
    one = take(x, indices) + 1.0
    b.output(one, one * take(x, indices))
    graph = b.graph()
    large(8000)
    staged = proven(graph, texts=("realise",))
    assert len(staged.program.kernels) == 1
    assert staged.dumps["realise"].count("call @past_") == 2
    for size in (0, 5, 1999, 2000, 3100):
        table, places = arrays_of([("float32", (60,)), ("int32", (size,))])
        found, other = checked.run(staged, table, places, threads=2, n=size)
        np.testing.assert_array_equal(found, table[places] + 1)
        np.testing.assert_array_equal(other, (table[places] + 1) * table[places])


@pytest.mark.parametrize("offset", [0, 4, 8, 60])
def test_a_result_may_begin_anywhere_in_a_cache_line(offset: int, large: Callable[[int], None]) -> None:
    graph = graph_of(added, [("float32", (3000,))] * 2)
    large(LARGE)
    run = program(compiled(graph))
    arrays = arrays_of([("float32", (3000,))] * 2)
    memory = np.zeros(3000 * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    result = memory[start : start + 12000].view(np.float32)
    run.run_into([result], *arrays)
    np.testing.assert_array_equal(result, arrays[0] + arrays[1])
    assert not memory[:start].any()
    assert not memory[start + 12000 :].any()


def test_two_results_of_a_map_are_both_staged(large: Callable[[int], None]) -> None:
    b = Builder("staged")
    x = b.input("float32", (40, 300))
    b.output(x + 1.0)
    b.output((x * 2.0).cast("float64"))
    graph = b.graph()
    large(LARGE)
    staged = proven(graph, texts=("realise",))
    assert "@past_float32" in staged.dumps["realise"]
    (array,) = arrays_of([("float32", (40, 300))])
    one, two = checked.run(staged, array, threads=2)
    np.testing.assert_array_equal(one, array + 1)
    np.testing.assert_array_equal(two, array * 2)


@pytest.mark.parametrize(("rows", "is_staged"), [(8192, False), (12288, True)])
def test_results_of_48_mebibytes_are_staged(rows: int, is_staged: bool) -> None:
    text = str(after("realise", graph_of(relu, [("float32", (rows, 1024))]), "cpu:x86-64-v4"))
    assert ("nontemporal" in text) == is_staged


def test_rows_that_a_map_does_not_fill_are_stored_directly(large: Callable[[int], None]) -> None:
    large(LARGE)
    text = str(after("realise", graph_of(lambda x: x.sum(1), [("float32", (4096, 64))]), "cpu:x86-64-v4"))
    assert "nontemporal" not in text

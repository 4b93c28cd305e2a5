"""Candidates of kernels are timed by turns, on this machine and with symbols at typical sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from passes import timing
from passes.compile import CompileRequest
from passes.schedule.choice import Candidate
from passes.timing import tune
from tensorkiln.build import Builder
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.expr import Dim
from tensorkiln.graph import Graph
from tensorkiln.target import Target
from tests.compiled import compiled, target

NATIVE = target("cpu:native")


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "BUDGET_S", 0.0)


def product(rows: Dim = 20) -> Graph:
    """Two equal products and a third, whose rows do not fill the tallest tiles of any CPU."""
    b = Builder("products")
    x = b.input("float32", (rows, 96))
    w, v = (b.parameter("float32", (96, size)) for size in (96, 64))
    b.output((x @ w) @ w, x @ v)
    return b.graph()


def stages(graph: Graph) -> list[str]:
    begun: list[str] = []
    tune(CompileRequest(graph, NATIVE), begun.append)
    return begun


def test_equal_kernels_are_timed_as_one_and_what_is_prepared_is_not() -> None:
    tuning = tune(CompileRequest(product(), NATIVE), lambda _: None)
    offered = compiled(product()).offered
    several = {candidates[picked].key for candidates, picked in offered if len(candidates) > 1}
    timed = [kernel.candidates[0].key for kernel in tuning.kernels]
    assert len(timed) == len(set(timed))
    assert set(timed) <= several
    assert tuning.rounds == timing.LEAST_ROUNDS
    assert tuning.machine == NATIVE.cpu
    twice, once = sorted(tuning.kernels, key=lambda kernel: -kernel.candidates[0].estimate_ns)
    (estimate,) = {
        candidates[picked].estimate_ns
        for candidates, picked in offered
        if candidates[picked].key == twice.candidates[0].key
    }
    assert twice.candidates[0].estimate_ns == 2 * int(estimate)
    assert 0 < once.candidates[0].least_ns <= once.candidates[0].median_ns


def test_the_sizes_are_those_that_schedules_are_compared_at() -> None:
    b = Builder("rows")
    m, n = b.symbol("m", 1, 20), b.symbol("n", 1, 300)
    b.output(b.input("float32", (n, 20)) @ b.input("float32", (20, 96)), b.input("float32", (m,)) + 1.0)
    assert tune(CompileRequest(b.graph(), NATIVE), lambda _: None).sizes == (256, 20)


def test_a_graph_that_cannot_be_called_at_typical_sizes_is_refused() -> None:
    b = Builder("thirds")
    n = b.symbol("n", 3, 300)
    thirds = b.input("float32", (n, 20)).reshape((n // 3, 60))
    b.output(thirds @ b.input("float32", (60, 96)), b.input("float32", (20, 96)) @ b.input("float32", (96, 64)))
    with pytest.raises(UnsupportedGraphError, match="cannot be timed"):
        tune(CompileRequest(b.graph(), NATIVE), lambda _: None)


def test_a_graph_without_a_choice_is_compiled_once() -> None:
    b = Builder("sum")
    b.output(b.input("float32", (64,)) + 1.0)
    assert stages(b.graph()).count("codegen") == 1
    tuning = tune(CompileRequest(b.graph(), NATIVE), lambda _: None)
    assert (tuning.kernels, tuning.gain, tuning.measured) == ((), False, {})


def test_the_fastest_is_taken_where_it_is_faster_by_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(kernels: Sequence[int], slate: Sequence[Candidate], spent: Sequence[Sequence[Sequence[int]]]) -> object:
        slower = [[[1000] * 9] * 5, *[[[500] * 9] * 5 for _ in slate[1:]]]
        return kernel_of(kernels, slate, slower)

    kernel_of = timing._kernel  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(timing, "_kernel", halved)
    tuning = tune(CompileRequest(product(), NATIVE), lambda _: None)
    assert [kernel.picked for kernel in tuning.kernels] == [1] * len(tuning.kernels)
    assert tuning.before_ns > 0
    assert tuning.gain == (tuning.after_ns < timing.GAIN * tuning.before_ns)


@pytest.mark.parametrize("name", ["cuda:sm_90", "cpu:aarch64", "cpu:x86-64-v2"])
def test_another_machine_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedGraphError, match="cannot be timed here"):
        tune(CompileRequest(product(), Target.parse(name)), lambda _: None)


def test_inputs_that_would_be_too_large_are_timed_at_smaller_sizes() -> None:
    b = Builder("scores")
    batch, heads, length = (b.symbol(name, 1, 4096) for name in "bht")
    left, right = b.input("float32", (batch, heads, length, 64)), b.input("float32", (batch, heads, 64, length))
    b.output(left @ right)
    sizes = timing._typical(compiled(b.graph()).program)  # pyright: ignore[reportPrivateUsage]
    assert set(sizes.values()) == {64}


def test_a_graph_of_which_a_part_runs_elsewhere_is_refused() -> None:
    document = json.loads(product().to_json())
    first, second, third = document["input_vars"]
    copied = {"node": "copy", "in_var": first, "out_var": 99, "target_device": "cuda:0", "clone": False}
    place = max(at for at, node in enumerate(document["nodes"]) if node["node"] == "placeholder") + 1
    text = json.dumps(document["nodes"][place:]).replace(f'_var": {first}', '_var": 99')
    document["nodes"][place:] = [{**copied, "dtype": "float32"}, *json.loads(text)]
    graph = Graph.model_validate(document)
    assert (second, third) == graph.input_vars[1:]
    with pytest.raises(UnsupportedGraphError, match="cannot be timed"):
        tune(CompileRequest(graph, NATIVE), lambda _: None)

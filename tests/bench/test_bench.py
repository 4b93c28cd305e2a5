"""Every workload of the benchmark gives the same results as NumPy and ONNX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tests.bench.large_graph import NODES, large_graph
from tests.bench.measure import Measurement, by_turns, measure, rank_correlation
from tests.bench.table import table
from tests.bench.workloads import WORKLOADS, Workload
from tests.networks.operators import Conv


def test_a_small_workload_is_measured_and_shown() -> None:
    measurement = measure(WORKLOADS[0], budget_s=0.01)
    assert measurement.kernels == 1
    assert measurement.compile_s > 0
    assert all(seconds > 0 for seconds in measurement.seconds.values())
    header, line = table([measurement]).splitlines()
    assert header.split()[:3] == ["workload", "tensorkiln", "us"]
    assert len(header) == len(line)
    assert WORKLOADS[0].name in line


def test_estimates_that_order_workloads_as_their_times_do_are_correlated() -> None:
    def taken(*pairs: tuple[float, float]) -> list[Measurement]:
        return [Measurement(str(n), {"tensorkiln": ours}, told, 1.0, 1) for n, (ours, told) in enumerate(pairs)]

    assert rank_correlation(taken((1, 10), (2, 20), (3, 21), (4, 100))) == pytest.approx(1)
    assert rank_correlation(taken((1, 4), (2, 3), (3, 2), (4, 1))) == pytest.approx(-1)
    assert rank_correlation(taken((1, 2), (2, 1), (3, 3), (4, 4))) == pytest.approx(0.8)


def test_a_candidate_with_another_result_is_refused() -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        measure(replace(WORKLOADS[0], numpy=np.subtract), budget_s=0.01)


def test_every_candidate_is_timed_even_without_time() -> None:
    assert by_turns({"one": lambda: np.ones(1), "other": lambda: np.ones(1)}, 0.0).keys() == {"one", "other"}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_the_onnx_model_of_a_workload_is_its_numpy_function(workload: Workload) -> None:
    arrays = workload.arrays()
    feeds: dict[str, Any] = dict(zip("abc", arrays, strict=False))
    actual: Any
    (actual,) = ReferenceEvaluator(workload.model(), new_ops=[Conv]).run(None, feeds)
    np.testing.assert_allclose(actual, workload.numpy(*arrays), rtol=1e-3, atol=1e-3)


def test_the_large_graph_is_valid_and_every_node_of_it_counts() -> None:
    text = large_graph()
    assert len(text) > 1_000_000
    parsed = Graph.model_validate_json(text)
    assert len(parsed.types) == NODES
    canonical = canonicalize(parsed)
    assert len(canonical.graph.nodes) == NODES
    assert len(graph_digest(canonical)) == 64

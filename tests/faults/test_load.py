"""Many who want what is stored, and many who want something new, at once: each gets it, none of it twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import burst, hits
from tests.faults.clients import percentile
from tests.faults.size import FULL, sized
from tests.observe.figures import Figures
from tests.service.server import Server

HITS, GRAPHS = sized((100, 4), (hits.FULL, burst.FULL))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("kiln"), anew=FULL, queue=2 * GRAPHS) as running:
        yield running


def test_a_burst_of_graphs_is_compiled_by_all_processors(server: Server) -> None:
    if FULL:
        measured = burst.measure(server, GRAPHS)
        print(measured.shown())
        assert measured.share > 0.75
    else:
        burst.burst(server, burst.bodies_of(GRAPHS))
    told = Figures(server)
    assert told("kiln_cache_requests_total", result="miss") == GRAPHS
    assert told("kiln_job_seconds_count", kind="compile", outcome="ok") == GRAPHS


def test_many_concurrent_hits_are_answered(server: Server) -> None:
    same, renamed = hits.measure(server, HITS)
    print(same.shown(), renamed.shown(), sep="\n")
    assert (len(same.server_ms), len(renamed.server_ms)) == (HITS, HITS // 10)
    if FULL:
        assert percentile(same.server_ms, 0.5) < 3
        assert percentile(same.server_ms, 0.99) < 15
        assert same.per_processor_second > 300

"""Many who want what is stored, and many who want something new, at once: each gets it, none of it twice."""

from __future__ import annotations

from pathlib import Path

from tests.faults import burst, hits
from tests.faults.clients import percentile
from tests.faults.size import FULL, sized
from tests.observe.figures import Figures
from tests.service.server import Server


def test_what_is_stored_is_answered_to_many_at_once(tmp_path: Path) -> None:
    with Server(tmp_path / "kiln", anew=FULL) as server:
        same, renamed = hits.measure(server, sized(400, hits.FULL))
    print(same.shown(), renamed.shown(), sep="\n")
    assert (len(same.server_ms), len(renamed.server_ms)) == (sized(400, hits.FULL), sized(40, hits.FULL // 10))
    if FULL:
        assert percentile(same.server_ms, 0.5) < 3
        assert percentile(same.server_ms, 0.99) < 15
        assert same.per_processor_second > 300


def test_a_burst_of_graphs_is_compiled_by_all_processors(tmp_path: Path) -> None:
    count = sized(4, burst.FULL)
    with Server(tmp_path / "kiln", anew=FULL, queue=2 * count) as server:
        if FULL:
            measured = burst.measure(server, count)
            print(measured.shown())
            assert measured.share > 0.75
        else:
            burst.burst(server, burst.bodies_of(count))
        told = Figures(server)
    assert told("kiln_cache_requests_total", result="miss") == count
    assert told("kiln_job_seconds_count", kind="compile", outcome="ok") == count

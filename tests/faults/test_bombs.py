"""Bodies that would fill the memory are refused at once, and take none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.bombs import measure, shown
from tests.faults.clients import percentile
from tests.faults.size import FULL
from tests.service.server import Server

MAX_MS = 50.0
MAX_MOST_MS = 4 * MAX_MS
MAX_GROWN_MIB = 32.0


def test_bombs_are_refused_soon_and_within_32_mib(tmp_path: Path, size: Callable[[int, int], int]) -> None:
    with Server(tmp_path / "kiln", anew=True) as server:
        refusals = list(measure(server, size(20, 50)))
        print(*map(shown, refusals), sep="\n")
        for refusal in refusals:
            assert (refusal.status, refusal.code) == (413, "limit.exceeded"), refusal
            assert refusal.limit.startswith("body_")
            assert refusal.grown_mib < MAX_GROWN_MIB, refusal
            # A machine that runs other tests beside this one takes longer, by the clock and by its processors.
            if FULL:
                assert percentile(refusal.processor_ms, 0.9) < MAX_MS, refusal
                assert max(refusal.processor_ms) < MAX_MS, refusal
                assert percentile(refusal.milliseconds, 0.95) <= MAX_MS, refusal
                assert max(refusal.milliseconds) < MAX_MOST_MS, refusal
        assert server.http.get("/readyz").status_code == 200
        assert "defect" not in server.log()

"""Bodies that would fill the memory are refused at once, and take none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.faults.bombs import measure, shown
from tests.faults.size import FULL
from tests.service.server import Server

# At the small size a machine that is busy with other tests decides over all but the fastest, and over much of that.
MAX_MS = 50.0 if FULL else 250.0
typical = median if FULL else min
MAX_GROWN_MIB = 32.0


def test_bombs_are_refused_soon_and_within_32_mib(tmp_path: Path, size: Callable[[int, int], int]) -> None:
    with Server(tmp_path / "kiln") as server:
        refusals = list(measure(server, size(5, 50)))
        print(*map(shown, refusals), sep="\n")
        for refusal in refusals:
            assert (refusal.status, refusal.code) == (413, "limit.exceeded"), refusal
            assert refusal.limit.startswith("body_")
            assert refusal.grown_mib < MAX_GROWN_MIB, refusal
            assert typical(refusal.milliseconds) < MAX_MS, refusal
        assert server.http.get("/readyz").status_code == 200
        assert "defect" not in server.log()

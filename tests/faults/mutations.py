"""A campaign of mutated requests: `python -m tests.faults.mutations [COUNT [SEED]]` prints what became of them."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx2

from tests.faults.memory import forget_peak, peak_mib, resident_mib
from tests.faults.mutants import Mutant, mutant
from tests.service.server import Server

FULL: Final = 10_000
SETTINGS: Final[dict[str, Any]] = {"compile_deadline_s": 10, "queue": 4096}


@dataclass
class Campaign:
    """What became of the requests: `wrong` are those that were answered as none may be, with the reason."""

    sent: int = 0
    codes: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    rejected_ms: list[float] = field(default_factory=list[float])
    slowest: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])
    wrong: list[tuple[str, Mutant]] = field(default_factory=list[tuple[str, Mutant]])
    crashed: int = 0
    peak_mib: float = 0.0
    fork_server_mib: float = 0.0

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the refusals came."""
        ordered = sorted(self.rejected_ms)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def add(self, sent: Mutant, answer: httpx2.Response, milliseconds: float) -> None:
        """Count one answer."""
        self.sent += 1
        self.kinds[sent.kind] += 1
        if answer.status_code < 300:
            self.codes[str(answer.status_code)] += 1
            return
        self.rejected_ms.append(milliseconds)
        self.slowest = sorted([*self.slowest, (milliseconds, sent.kind, sent.path)], reverse=True)[:5]
        code = self._judged(sent, answer)
        self.codes[f"{answer.status_code} {code}"] += 1
        self.crashed += code == "compile.crashed"

    def _judged(self, sent: Mutant, answer: httpx2.Response) -> str:
        if answer.headers.get("Content-Type") != "application/problem+json":
            self.wrong.append((f"{answer.status_code} {answer.headers.get('Content-Type')}", sent))
            return "?"
        problem = answer.json()
        code = str(problem["code"])
        if answer.status_code >= 500 or problem["status"] != answer.status_code or code == "internal":
            self.wrong.append((f"{answer.status_code} {code}: {problem['detail']}", sent))
        return code

    def shown(self) -> str:
        """The figures."""
        spread = ", ".join(f"{self.percentile(share):.1f}" for share in (0.5, 0.99, 1.0))
        return "\n".join(
            [
                f"{self.sent} requests: {dict(sorted(self.codes.items()))}",
                f"by kind: {dict(sorted(self.kinds.items()))}",
                f"{len(self.rejected_ms)} refusals, of which half, 99 % and all within {spread} ms",
                f"slowest: {self.slowest}",
                f"{len(self.wrong)} answered wrongly, {self.crashed} crashes of a compiler",
                f"service {self.peak_mib:.0f} MiB at its peak, fork server {self.fork_server_mib:.0f} MiB",
            ]
        )


def run(server: Server, count: int, seed: int = 0) -> Campaign:
    """Send `count` mutants one after the other."""
    campaign, chance = Campaign(), Random(seed)
    forget_peak(server.pid)
    for _ in range(count):
        each = mutant(chance)
        begin = time.perf_counter()
        answer = server.http.post(each.path, content=each.body, headers=each.headers)
        campaign.add(each, answer, (time.perf_counter() - begin) * 1e3)
    campaign.peak_mib = peak_mib(server.pid)
    campaign.fork_server_mib = resident_mib(server.reader)
    return campaign


def main() -> int:
    """The exit status: 1 when an answer was wrong."""
    count, seed, *_ = [*map(int, sys.argv[1:]), *(FULL, 0)[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as home, Server(Path(home) / "kiln", anew=True, **SETTINGS) as server:
        campaign = run(server, count, seed)
        print(campaign.shown())
        for reason, each in campaign.wrong[:20]:
            print(reason, each.kind, each.path, each.body[:300], each.headers)
    return 1 if campaign.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

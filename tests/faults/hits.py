"""What is stored is answered fast, also to many: `python -m tests.faults.hits [REQUESTS]` prints how fast."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.clients import percentile, send
from tests.faults.processor import spent_by_all_s
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

CLIENTS = 8
FULL = 8000


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of one kind, those in a second and those in a second of the service's processor time.

    Milliseconds are those at the server from the head of a request on, and those at the client, where it also waits for
    the others.
    """

    kind: str
    server_ms: Sequence[float]
    client_ms: Sequence[float]
    per_second: float
    per_processor_second: float

    def shown(self) -> str:
        """One line."""
        at_server, at_client = (
            ", ".join(f"{percentile(taken, share):.2f}" for share in (0.5, 0.95, 0.99, 1.0))
            for taken in (self.server_ms, self.client_ms)
        )
        return (
            f"{self.kind}: {len(self.server_ms)} hits by {CLIENTS} clients, of which half, 95 %, 99 % and all within "
            f"{at_server} ms at the server, {at_client} ms at the clients, which ask without a pause; "
            f"{self.per_second:.0f} in a second, {self.per_processor_second:.0f} in one of the service's processor time"
        )


def measure(server: Server, requests: int) -> tuple[Hits, Hits]:
    """Hits of requests that are the same byte for byte, and of a graph that is the same under other names."""
    same = encoded(compile_body())
    assert server.compile(same).status_code == 200
    renamed = [encoded(compile_body(graph(name=f"g{number}"))) for number in range(requests // 10)]
    return _hits(server, "the same request", [same] * requests), _hits(server, "another name", renamed)


def _hits(server: Server, kind: str, bodies: Sequence[bytes]) -> Hits:
    before = spent_by_all_s(server)
    answers, seconds = send(server.url, bodies, CLIENTS)
    spent = spent_by_all_s(server) - before
    assert all(answer.status == 200 and b'"status":"hit"' in answer.content for answer in answers)
    assert len(answers) == len(bodies)
    at_server, at_client = [each.server_ms for each in answers], [1e3 * each.seconds for each in answers]
    return Hits(kind, at_server, at_client, len(bodies) / seconds, len(bodies) / spent)


def main() -> int:
    """The exit status."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else FULL
    with tempfile.TemporaryDirectory() as home, Server(Path(home) / "kiln", anew=True) as server:
        for hits in measure(server, requests):
            print(hits.shown(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Small bodies that would be large: `python -m tests.faults.bombs` prints how fast and how cheaply each is refused."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from service.http.coded_bodies import zstd
from tests.faults.memory import forget_peak, peak_mib, resident_mib
from tests.faults.processor import processor_s
from tests.service.server import Server

PLAIN_BYTES = 256 << 20


@dataclass(frozen=True)
class Refusal:
    """How one bomb fared: milliseconds of each time it was sent, and MiB that the service grew by at the peak.

    `processor_ms` is what the service itself had of the processors each time.
    """

    bomb: str
    sent_bytes: int
    status: int
    code: str
    limit: str
    milliseconds: tuple[float, ...]
    processor_ms: tuple[float, ...]
    grown_mib: float


def streamed(content: bytes, window_log: int = 21) -> bytes:
    """zstd that states no size of its content."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: window_log}
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(content) + compressor.flush()


def bombs() -> Iterator[tuple[str, str, bytes]]:
    """Each with its name and its Content-Encoding."""
    zeros = bytes(PLAIN_BYTES)
    yield "zstd, size stated", "zstd", zstd.compress(zeros)
    yield "zstd, no size stated", "zstd", streamed(zeros)
    yield "zstd after a little that does not swell", "zstd", streamed(os.urandom(100_000) + zeros)
    yield "zstd, window of 128 MiB", "zstd", streamed(os.urandom(1000), window_log=27)
    yield "zstd, 100 000 empty frames", "zstd", zstd.compress(b"") * 100_000
    yield "gzip", "gzip", gzip.compress(zeros, mtime=0)


def measure(server: Server, times: int) -> Iterator[Refusal]:
    """Every bomb, sent so many times."""
    for name, coding, content in bombs():
        server.post("/validate", b"{}")
        before = resident_mib(server.pid)
        forget_peak(server.pid)
        took: list[float] = []
        spent: list[float] = []
        answers: set[tuple[int, str, str]] = set()
        for _ in range(times):
            begin, before_it = time.perf_counter(), processor_s(server.pid)
            answer = server.post("/validate", content, Content_Encoding=coding)
            took.append((time.perf_counter() - begin) * 1e3)
            spent.append((processor_s(server.pid) - before_it) * 1e3)
            problem = answer.json()
            answers.add((answer.status_code, problem["code"], problem["details"].get("limit", "")))
        ((status, code, limit),) = answers
        grown = peak_mib(server.pid) - before
        yield Refusal(name, len(content), status, code, limit, tuple(took), tuple(spent), grown)


def shown(refusal: Refusal) -> str:
    """One line."""
    return (
        f"{refusal.bomb:<42} {refusal.sent_bytes:>9} bytes  {refusal.status} {refusal.limit:<18}"
        f" median {median(refusal.milliseconds):6.1f} ms, most {max(refusal.milliseconds):6.1f} ms,"
        f" {max(refusal.processor_ms):5.1f} ms of a processor,"
        f" {refusal.grown_mib:5.1f} MiB more"
    )


def main() -> int:
    """The exit status."""
    with tempfile.TemporaryDirectory() as home, Server(Path(home) / "kiln", anew=True) as server:
        for refusal in measure(server, 20):
            print(shown(refusal), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

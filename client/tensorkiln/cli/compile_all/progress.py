"""Progress of a run: a changing line in a terminal, or a line every ten seconds in a log."""

from __future__ import annotations

import sys
import time
from typing import Final

from ..report import Step, one_line
from .escape import escaped
from .result import Result

EVERY_S: Final = 10.0


class Progress:
    """Counts the results of a run of `total`. `step` shows a line at a terminal."""

    def __init__(self, total: int, step: Step, *, is_annotated: bool) -> None:
        self._total = total
        self._step = step
        self._is_annotated = is_annotated
        self._done = self._hits = self._failed = 0
        self._slowest = 0.0
        self._said_at = time.monotonic()
        step(self._line())

    def tell(self, result: Result) -> None:
        """Count one more result."""
        self._done += 1
        self._hits += result.cache is not None and result.cache.status == "hit"
        self._failed += result.error is not None
        self._slowest = max(self._slowest, result.outcome.seconds if result.outcome is not None else 0.0)
        if result.error is not None and not self._is_annotated:
            line = escaped(f"{result.file.path} for {result.target}: {one_line(result.error)}")
            print(line, file=sys.stderr, flush=True)
        self._step(self._line())
        if not sys.stderr.isatty() and time.monotonic() - self._said_at > EVERY_S:
            self._said_at = time.monotonic()
            print(self._line(), file=sys.stderr, flush=True)

    def _line(self) -> str:
        return (
            f"{self._done} of {self._total}, {self._hits} hits, {self._failed} failed, "
            f"the slowest took {self._slowest:.1f} s"
        )

"""One graph for one target: what was wanted and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from ...errors import TensorkilnError
from ...sdk import Outcome
from ...spec import CacheInfo, CompiledProgram
from ..printable import as_unicode
from .files import GraphFile
from .lock import Locked

STATUSES: Final = ("ok", "failed", "not cached", "not run")


@dataclass(frozen=True, slots=True)
class Result:
    """`outcome` is None when the run ended before. `made` is what the lock file says of it, None unless it succeeded.

    `locked` is what the lock file said before. `error` is what went wrong, be it after the compile. `miss` is what the
    service said of a program that it has not stored, of a run that compiles nothing.
    """

    file: GraphFile
    target: str
    outcome: Outcome | None = None
    made: Locked | None = None
    locked: Locked | None = None
    error: TensorkilnError | None = None
    miss: CacheInfo | None = None

    @property
    def status(self) -> str:
        """One of STATUSES."""
        if self.outcome is None:
            return "not run"
        return "failed" if self.error is not None else "not cached" if self.miss is not None else "ok"

    @property
    def cache(self) -> CacheInfo | None:
        """What the service said about its store."""
        if self.miss is not None:
            return self.miss
        return self.outcome.compiled.cache if self.outcome is not None and self.outcome.compiled is not None else None

    @property
    def growth(self) -> int | None:
        """The bytes by which the code has grown since it was locked."""
        return self.made.bytes - self.locked.bytes if self.made is not None and self.locked is not None else None

    @property
    def is_unfaithful(self) -> bool:
        """Whether the same question got another answer than it did when it was locked."""
        if self.made is None or self.locked is None or self.made.digest != self.locked.digest:
            return False
        return self.made.program != self.locked.program

    def warnings(self) -> tuple[str, ...]:
        """What somebody should look at, though the compile succeeded."""
        found: list[str] = []
        if self.growth is not None and self.growth > 0:
            found.append(f"the code has grown by {self.growth} bytes since it was locked")
        if self.outcome is not None and self.outcome.attempt > 1:
            found.append(f"the service needed {self.outcome.attempt} attempts")
        if self.error is None and self.outcome is not None and self.outcome.compiled is not None:
            kernels = [each.resources for each in self.outcome.compiled.kernels if each.resources is not None]
            spills = sum(each.spill_bytes or 0 for each in kernels)
            if spills:
                found.append(f"the kernels spill {spills} bytes of registers")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The result as the report has it."""
        outcome, made, cache = self.outcome, self.made, self.cache
        return {
            "graph": self.file.name,
            "file": as_unicode(self.file.path.as_posix()),
            "target": self.target,
            "status": self.status,
            "digest": made.digest if made else None,
            "cache": cache.model_dump(mode="json") if cache else None,
            "seconds": round(outcome.seconds, 6) if outcome else None,
            "queue_ms": outcome.queue_ms if outcome else None,
            "run_ms": outcome.run_ms if outcome else None,
            "attempt": outcome.attempt if outcome else None,
            "bytes": made.bytes if made else None,
            "growth": self.growth,
            "warnings": list(self.warnings()),
            "error": self.error.to_problem() if self.error else None,
        }


def counts(results: Sequence[Result]) -> dict[str, int]:
    """How many there are of each status."""
    return {status: sum(each.status == status for each in results) for status in STATUSES}


def locked(program: CompiledProgram, sizes: int) -> Locked:
    """What the lock file says of a program whose artifacts have so many bytes.

    What is no part of the question may differ between two who asked it, and says nothing of what the program does: how
    long it took, the dumps, whether it was stored, and how the compile was confined.
    """
    provenance = program.provenance.model_copy(update={"isolation": ""})
    same = program.with_stages({}, {}).model_copy(update={"provenance": provenance, "cache": CacheInfo(status="miss")})
    content = sha256(same.model_dump_json().encode()).hexdigest()
    return Locked(digest=program.digest, program=content, bytes=sizes, build_id=program.provenance.build_id)
